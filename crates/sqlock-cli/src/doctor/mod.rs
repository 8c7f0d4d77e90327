//! `sqlock doctor`: what the server is, and which backend to use on it.

mod findings;
mod words;

use std::io::{self, Write as _};

use sqlock_postgres::{
    connect_options,
    preflight::{self, recommend},
};
use sqlx::postgres::PgConnectOptions;
use tokio::time::timeout;

use crate::{
    args::Doctor,
    exit::{Code, Failure},
    scrub::printable,
    target::Target,
};
use findings::Findings;

/// Looks at the server, and tells what it found on standard output.
pub(crate) async fn doctor(args: &Doctor) -> Result<Code, Failure> {
    let target = args.target().ok_or_else(|| {
        let what = "no server: name one as an argument, or in the variable DATABASE_URL";
        Failure::new(Code::USAGE, what)
    })?;
    let findings = examine(args, target).await?;
    let text = if args.json {
        let text = serde_json::to_string_pretty(&findings);
        text.map_err(|error| Failure::system("cannot write the report", error))?
    } else {
        printable(&words::report(&findings)).into_owned()
    };
    writeln!(io::stdout().lock(), "{}", text.trim_end())
        .map_err(|error| Failure::system("cannot write the report", error))?;
    Ok(match findings.recommendation.backend {
        Some(_) => Code::SUCCESS,
        None => Code::NO_LOCKS,
    })
}

async fn examine(args: &Doctor, target: &Target) -> Result<Findings, Failure> {
    let invalid = |error| Failure::of(format!("cannot use {target}"), error);
    let options = connect_options(target.reveal()).map_err(invalid)?;
    let options = options.application_name("sqlock doctor");
    let report = match timeout(args.timeout, preflight::examine(&options)).await {
        Ok(Ok(report)) => report,
        Ok(Err(error)) => return Err(unreachable(target, &options, error)),
        Err(_) => {
            let limit = humantime::format_duration(args.timeout);
            let what = format!("cannot look at {target}: no answer within {limit} (--timeout)");
            return Err(Failure::new(Code::UNAVAILABLE, what));
        }
    };
    let recommendation = recommend(&report);
    Ok(Findings {
        sqlock: env!("CARGO_PKG_VERSION"),
        server: target.to_string(),
        doubt: report.doubt(),
        report,
        recommendation,
    })
}

fn unreachable(target: &Target, options: &PgConnectOptions, error: sqlx::Error) -> Failure {
    let user = options.get_username();
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code);
    let is_refused = matches!(code.as_deref(), Some("28P01" | "28000"));
    let hint = if is_refused {
        format!(" as user {user} (a password can be given in PGPASSWORD or ~/.pgpass)")
    } else {
        String::new()
    };
    let error = sqlock_postgres::Failure::of(error).error("doctor", "connect");
    Failure::of(format!("cannot look at {target}{hint}"), error)
}
