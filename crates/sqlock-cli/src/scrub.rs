//! No password leaves this program by way of a message.

use std::{
    borrow::Cow,
    io::{self, Write},
};

/// `text` without what follows `://` on its line: in a URL that is where passwords are, and one
/// that is not well-formed cannot be told apart from what surrounds it.
pub(crate) fn scrub(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let mut scrubbed = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match line.find("://") {
            None => scrubbed.push_str(line),
            Some(at) => {
                scrubbed.push_str(&line[..at]);
                scrubbed.push_str("://***");
                if line.ends_with('\n') {
                    scrubbed.push('\n');
                }
            }
        }
    }
    Cow::Owned(scrubbed)
}

/// `text` as a terminal may have it: what a server or a name brings along moves no cursor and
/// changes no title.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let is_unsafe = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(is_unsafe, "\u{fffd}"))
}

/// Standard error, for those who hand over whole messages at a time, as `tracing` does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScrubbedStderr;

impl Write for ScrubbedStderr {
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(message);
        io::stderr().write_all(scrub(&text).as_bytes())?;
        Ok(message.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_url_stays() {
        assert_eq!(scrub("sqlock: no such file\n"), "sqlock: no such file\n");
    }

    #[test]
    fn other_lines_stay() {
        let text = "unexpected 'postgres://u:p@h'\n\nUsage: sqlock run\n";
        assert_eq!(
            scrub(text),
            "unexpected 'postgres://***\n\nUsage: sqlock run\n"
        );
    }

    #[test]
    fn a_terminal_gets_no_orders() {
        assert_eq!(printable("a\tb\n"), "a\tb\n");
        assert_eq!(
            printable("\u{1b}]0;title\u{7}\u{9b}"),
            "\u{fffd}]0;title\u{fffd}\u{fffd}"
        );
    }

    proptest! {
        #[test]
        fn no_password_of_a_url_is_left(before in "[a-z '\n]{0,9}", password in "[^\n]{1,20}", after in "[a-z '\n]{0,9}") {
            // no character of the password is one of the rest
            let password: String = password.chars().map(|c| if c.is_ascii_lowercase() || " '*:/\n".contains(c) { 'Q' } else { c }).collect();
            let text = format!("{before}postgres://user:{password}@host/db{after}");
            let scrubbed = scrub(&text);
            prop_assert!(!scrubbed.contains(&password), "{scrubbed}");
        }
    }
}
