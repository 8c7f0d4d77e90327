//! Work that ends with its lock: the two are one transaction. Needs `DATABASE_URL`.

use sqlock::{Locks, XactBackend};
use sqlx::PgPool;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = PgPool::connect(&std::env::var("DATABASE_URL")?).await?;
    sqlx::raw_sql("create table if not exists report (day date primary key, body text not null)")
        .execute(&pool)
        .await?;
    let locks = Locks::new(XactBackend::new(pool));

    let Some(mut guard) = locks.try_acquire("daily-report").await? else {
        eprintln!("another node writes it");
        return Ok(());
    };
    let inserted = sqlx::query(
        "insert into report (day, body) values (current_date, $1) on conflict do nothing",
    )
    .bind("all is well")
    .execute(guard.connection())
    .await?;
    // A drop of the guard, or an error above, undoes the work with the lock.
    guard.commit().await?;
    match inserted.rows_affected() {
        0 => eprintln!("today's report is there already"),
        _ => eprintln!("wrote today's report"),
    }
    locks.shutdown().await?;
    Ok(())
}
