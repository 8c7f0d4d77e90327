//! A resource that refuses a holder whose lease is over, by its fencing token. Needs `DATABASE_URL`.

use sqlock::{FencingToken, Locks, TtlBackend};
use sqlx::PgPool;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("DATABASE_URL")?;
    let pool = PgPool::connect(&url).await?;
    sqlx::raw_sql(
        "create table if not exists page (id int primary key, body text, last_token bigint not null);
         insert into page values (1, null, 0) on conflict do nothing",
    )
    .execute(&pool)
    .await?;
    let backend = TtlBackend::connect(&url)?;
    backend.create_table().await?;
    let locks = Locks::new(backend);

    let guard = locks.acquire("page/1").await?;
    let paused = guard.token().ok_or("a lease has a token")?;
    guard.release().await?; // or it expired, while its holder was paused

    let guard = locks.acquire("page/1").await?;
    let token = guard.token().ok_or("a lease has a token")?;
    let written = guard.protect(write(&pool, "new", token)).await??;
    eprintln!("the holder writes: {written}");

    // The first one goes on, and does not know yet that its lease is over.
    let written = write(&pool, "old", paused).await?;
    eprintln!("one that was paused writes: {written}");

    guard.release().await?;
    locks.shutdown().await?;
    Ok(())
}

/// Whether it was written: not where a later holder has been there.
async fn write(pool: &PgPool, body: &str, token: FencingToken) -> sqlx::Result<bool> {
    let updated =
        sqlx::query("update page set body = $1, last_token = $2 where id = 1 and last_token <= $2")
            .bind(body)
            .bind(token.get())
            .execute(pool)
            .await?;
    Ok(updated.rows_affected() == 1)
}
