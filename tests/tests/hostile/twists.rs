//! Every way in which an answer can be wrong.

use crate::fake::{Answer, End, INT8, Row, TEXT};

/// An answer that an honest server would give, made wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Twist {
    NoRow,
    /// The row, and one of nulls.
    OneMore,
    Nulls,
    /// The last column is missing.
    FewerColumns,
    NoColumns,
    /// Every column is text.
    Words,
    /// Every column is the least, or the greatest, number.
    Number(i64),
    Error(&'static str),
    Fatal(&'static str),
    Silence,
    HangUp,
    Half(End),
    Bytes(&'static [u8]),
}

pub(crate) const TWISTS: [Twist; 27] = [
    Twist::NoRow,
    Twist::OneMore,
    Twist::Nulls,
    Twist::FewerColumns,
    Twist::NoColumns,
    Twist::Words,
    Twist::Number(i64::MIN),
    Twist::Number(i64::MAX),
    Twist::Error("XX000"),
    Twist::Error("40001"),
    Twist::Error("40P01"),
    Twist::Error("42501"),
    Twist::Error("53200"),
    Twist::Error("55P03"),
    Twist::Error("57014"),
    Twist::Error("25P02"),
    Twist::Error(""),
    Twist::Fatal("25P04"),
    Twist::Fatal("57P01"),
    Twist::Silence,
    Twist::HangUp,
    Twist::Half(End::Closed),
    Twist::Half(End::Silent),
    // of no kind that there is
    Twist::Bytes(b"\xff\x00\x00\x00\x08abcd"),
    // a row that ends in the middle of a value
    Twist::Bytes(b"D\x00\x00\x00\x0b\x00\x05\x00\x00\x00\x09x"),
    // an error without an end
    Twist::Bytes(b"E\x00\x00\x00\x07SFA"),
    // shorter than its own header, on which sqlx panics
    Twist::Bytes(b"D\x00\x00\x00\x02"),
];

impl Twist {
    pub(crate) fn of(self, honest: &Answer) -> Answer {
        match self {
            Self::NoRow => Answer::Rows(Vec::new()),
            Self::OneMore => {
                let mut all = rows(honest);
                all.extend(all.first().map(with(None)));
                Answer::Rows(all)
            }
            Self::Nulls => Answer::Rows(rows(honest).iter().map(with(None)).collect()),
            Self::FewerColumns => {
                let cut = |row: Row| row[..row.len().saturating_sub(1)].to_vec();
                Answer::Rows(rows(honest).into_iter().map(cut).collect())
            }
            Self::NoColumns => Answer::Row(Vec::new()),
            Self::Words => Answer::Rows(all(honest, TEXT, "surprise")),
            Self::Number(number) => Answer::Rows(all(honest, INT8, &number.to_string())),
            Self::Error(code) => Answer::Error(code, "so it is"),
            Self::Fatal(code) => Answer::Fatal(code, "so it ends"),
            Self::Silence => Answer::Silence,
            Self::HangUp => Answer::HangUp,
            Self::Half(end) => Answer::Half(Box::new(honest.clone()), end),
            Self::Bytes(bytes) => Answer::Bytes(bytes.to_vec()),
        }
    }
}

fn rows(answer: &Answer) -> Vec<Row> {
    match answer {
        Answer::Row(row) => vec![row.clone()],
        Answer::Rows(rows) => rows.clone(),
        _ => Vec::new(),
    }
}

fn with(value: Option<String>) -> impl Fn(&Row) -> Row {
    move |row| row.iter().map(|(kind, _)| (*kind, value.clone())).collect()
}

fn all(answer: &Answer, kind: i32, value: &str) -> Vec<Row> {
    let same = |row: &Row| vec![(kind, Some(value.to_owned())); row.len()];
    rows(answer).iter().map(same).collect()
}
