use sqlock_core::{Error, Result};

use super::literal::quoted_identifier;

/// A table of leases, with its schema: names are quoted wherever they are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableName {
    pub(super) schema: String,
    pub(super) table: String,
}

/// PostgreSQL cuts longer names; the sequence's has four bytes more than the table's.
const MAX_BYTES: usize = 63;
const SEQUENCE_SUFFIX: &str = "_seq";
const WAITERS_SUFFIX: &str = "_waiters";

impl TableName {
    pub(crate) fn new(schema: &str, table: &str) -> Result<Self> {
        check("schema", schema, MAX_BYTES)?;
        check("table", table, MAX_BYTES - SEQUENCE_SUFFIX.len())?;
        Ok(Self {
            schema: schema.to_owned(),
            table: table.to_owned(),
        })
    }

    /// `"schema"."table"`
    pub(super) fn quoted(&self) -> String {
        self.qualified(&self.table)
    }

    /// The sequence below which no new token is.
    pub(super) fn quoted_sequence(&self) -> String {
        self.qualified(&format!("{}{SEQUENCE_SUFFIX}", self.table))
    }

    /// The table of those who wait.
    pub(super) fn quoted_waiters(&self) -> String {
        self.qualified(&format!("{}{WAITERS_SUFFIX}", self.table))
    }

    /// Where those who wait have a table too, its name is longer.
    pub(crate) fn check_waiters(&self) -> Result<()> {
        check("table", &self.table, MAX_BYTES - WAITERS_SUFFIX.len())
    }

    fn qualified(&self, name: &str) -> String {
        let schema = quoted_identifier(&self.schema);
        format!("{schema}.{}", quoted_identifier(name))
    }
}

fn check(option: &'static str, name: &str, max: usize) -> Result<()> {
    if (1..=max).contains(&name.len()) && !name.contains('\0') {
        return Ok(());
    }
    Err(Error::InvalidOption {
        option,
        reason: format!("a name has 1 to {max} bytes and no NUL character"),
    })
}
