use std::time::Duration;

use anyhow::Result;
use sqlx::Connection as _;
use tokio::time::{sleep, timeout};

use super::{Event, Fault, Step, TTL, journal::Journal, proxy::Weather, world::World};
use crate::{Stop, signal};

const LIMIT: Duration = Duration::from_secs(3);

/// Does a step, and undoes it when its time is over.
pub(super) async fn strike(world: &mut World, step: Step, journal: &Journal) -> Result<()> {
    sleep(step.after).await;
    let Step { fault, length, .. } = step;
    let victim = step.victim % world.workers.len().max(1);
    if !world.can(fault) {
        journal.write(Event::Impossible { fault });
        return Ok(());
    }
    let target = matches!(
        fault,
        Fault::PauseWorker | Fault::KillWorker | Fault::StepClock
    )
    .then(|| world.workers.get(victim).map(|worker| worker.number))
    .flatten();
    journal.write(Event::Struck { fault, target });
    match fault {
        Fault::TerminateAll => terminate(world, &world.backends().await).await,
        Fault::TerminateOne => terminate(world, one_of(&world.backends().await, step.victim)).await,
        Fault::KillBackend => {
            if let [pid] = *one_of(&world.backends().await, step.victim) {
                // It may have ended meanwhile.
                if world.server.processes().contains(&pid) {
                    world.server.kill_backend(pid);
                }
            }
        }
        Fault::KillServer => {
            world.server.kill().await;
            world.server.start_again().await;
        }
        Fault::FastStop => world.server.restart(Stop::Fast).await,
        Fault::ImmediateStop => world.server.restart(Stop::Immediate).await,
        Fault::PauseServer => {
            world.server.pause();
            sleep(length).await;
            world.server.resume();
        }
        Fault::PauseWorker => pause(world, victim, length + TTL).await,
        Fault::KillWorker => {
            let mut worker = world.workers.swap_remove(victim);
            worker.kill().await;
            world.hire()?;
        }
        Fault::Cut => world.proxy.cut(),
        Fault::BlackHole => weather(world, Weather::Blocked, length).await,
        Fault::Deaf => weather(world, Weather::Deaf, length).await,
        Fault::Mute => weather(world, Weather::Mute, length).await,
        Fault::Delay => weather(world, Weather::Delayed(length / 20), length).await,
        Fault::Trickle => weather(world, Weather::Trickling, length).await,
        Fault::RestartPooler => {
            if let Some(pooler) = &world.pooler {
                pooler.restart().await;
            }
        }
        Fault::ReloadPooler => {
            if let Some(pooler) = &world.pooler {
                pooler.reload().await;
            }
        }
        Fault::ReconnectPooler => {
            if let Some(pooler) = &world.pooler {
                pooler.reconnect().await;
            }
        }
        Fault::LockMemory => exhaust(world, length).await,
        Fault::ReplaceHost => {
            world.server.kill().await;
            world.server.start_elsewhere().await;
            world.find_server()?;
            world.proxy.cut();
        }
        Fault::DiskFull => fill_disk(world, length).await?,
        Fault::StepClock => {
            if let Some(worker) = world.workers.get(victim) {
                let forward = step.victim.is_multiple_of(2);
                worker.set_clock(if forward { "+3600" } else { "-3600" })?;
            }
        }
    }
    journal.write(Event::Healed { fault, target });
    Ok(())
}

/// No room in the table: its pages are full of rows, and no more pages can be had. A transaction that
/// looks at it meanwhile keeps old versions of rows from being replaced.
async fn fill_disk(world: &World, length: Duration) -> Result<()> {
    let (Some(disk), Some(mut admin), Some(mut looker)) =
        (&world.disk, world.admin().await, world.admin().await)
    else {
        return Ok(());
    };
    let look = "begin isolation level repeatable read; select count(*) from public.sqlock_leases";
    let _ = timeout(LIMIT, sqlx::raw_sql(look).execute(&mut looker)).await;
    disk.fill()?;
    let fill = "do $$ begin for i in 1..100000 loop \
        begin insert into public.sqlock_leases (name, token) values ('filler ' || i, 0); \
        exception when disk_full then exit; end; end loop; end $$";
    let _ = timeout(LIMIT, sqlx::raw_sql(fill).execute(&mut admin)).await;
    sleep(length + TTL).await;
    disk.free()?;
    let _ = timeout(LIMIT, looker.close()).await;
    let clear = "delete from public.sqlock_leases where name like 'filler %'";
    let _ = timeout(LIMIT, sqlx::raw_sql(clear).execute(&mut admin)).await;
    Ok(())
}

async fn pause(world: &World, victim: usize, length: Duration) {
    let Some(pid) = world
        .workers
        .get(victim)
        .and_then(super::world::Process::pid)
    else {
        return;
    };
    signal::pause(pid);
    sleep(length).await;
    signal::resume(pid);
}

async fn weather(world: &World, weather: Weather, length: Duration) {
    world.proxy.set(weather);
    sleep(length).await;
    world.proxy.set(Weather::Fair);
}

async fn terminate(world: &World, pids: &[i32]) {
    let Some(mut admin) = world.admin().await else {
        return;
    };
    let query = sqlx::query("select pg_terminate_backend(pid) from unnest($1::int[]) as pid");
    let _ = timeout(LIMIT, query.bind(pids).execute(&mut admin)).await;
}

/// Takes locks until the server has no memory for more; the server says so to all others, too.
async fn exhaust(world: &World, length: Duration) {
    let Some(mut admin) = world.admin().await else {
        return;
    };
    let all =
        "select count(pg_advisory_lock(1000000000000 + i)) from generate_series(1, 1000000) i";
    let taken = timeout(LIMIT, sqlx::query(all).execute(&mut admin)).await;
    if matches!(taken, Ok(Err(_))) {
        sleep(length).await;
    }
    let _ = timeout(LIMIT, admin.close()).await;
}

fn one_of(pids: &[i32], victim: usize) -> &[i32] {
    let index = victim % pids.len().max(1);
    pids.get(index..=index).unwrap_or_default()
}
