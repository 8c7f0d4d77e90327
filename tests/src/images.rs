use std::env;

use anyhow::{Context as _, Result};

/// The file that names all images, as shell variables.
const IMAGES: &str = include_str!("../images");

/// The name and the tag of the image that a variable of the environment names, or else of the one
/// that the file has under `default`.
pub(crate) fn image(variable: &str, default: &str) -> Result<(String, String)> {
    let given = env::var(variable).ok().filter(|image| !image.is_empty());
    let image = match &given {
        Some(image) => image,
        None => named(default).with_context(|| format!("tests/images names no {default}"))?,
    };
    let (name, tag) = image
        .rsplit_once(':')
        .with_context(|| format!("{variable} is {image:?}; it takes the form name:tag"))?;
    Ok((name.to_owned(), tag.to_owned()))
}

fn named(name: &str) -> Option<&'static str> {
    let mut lines = IMAGES.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_names_the_defaults() {
        for name in ["postgres", "pgbouncer"] {
            let (image, tag) = image("SQLOCK_TEST_NO_SUCH_VARIABLE", name).unwrap();
            assert!(!image.is_empty() && !tag.is_empty(), "{image}:{tag}");
        }
        assert!(image("SQLOCK_TEST_NO_SUCH_VARIABLE", "nothing").is_err());
    }
}
