//! What an error of the server means for tokens.

use std::sync::Arc;

use sqlock_core::{Error, FencingFault};

use super::names::Names;
use crate::Failure;

/// The error for those who wanted a token.
pub(super) fn error(
    names: &Names,
    backend: &'static str,
    operation: &'static str,
    failure: &Failure,
) -> Error {
    let (Failure::Connection(source) | Failure::Statement(source)) = failure;
    match fault(names, source) {
        Some(fault) => Error::Fencing {
            backend,
            fault,
            source: Some(Box::new(Arc::clone(source))),
        },
        None => failure.error(backend, operation),
    }
}

fn fault(names: &Names, error: &sqlx::Error) -> Option<FencingFault> {
    let object = || names.durable.clone();
    if matches!(error, sqlx::Error::RowNotFound) {
        return Some(FencingFault::Shape {
            object: object(),
            difference: "its row is not there".to_owned(),
        });
    }
    let error = error.as_database_error()?;
    match error.code().as_deref()? {
        "42P01" => Some(FencingFault::Missing { object: object() }),
        "3F000" => Some(FencingFault::Missing {
            object: format!("schema {}", names.schema),
        }),
        "42501" => Some(FencingFault::Denied {
            schema: names.schema.clone(),
        }),
        "25006" => Some(FencingFault::ReadOnly),
        // the sequence's end, and that of bigint
        "2200H" | "22003" => Some(FencingFault::Exhausted),
        // undefined column, wrong object type, mismatched type, no such function or operator, no
        // arbiter for a conflict, not null, check
        "42703" | "42809" | "42804" | "42883" | "42P10" | "23502" | "23514" => {
            Some(FencingFault::Shape {
                object: object(),
                difference: error.message().to_owned(),
            })
        }
        _ => None,
    }
}
