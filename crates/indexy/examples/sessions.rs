//! Sessions that end by themselves: a token lives for a while, and longer whenever it is used.
//!
//!     cargo run --release -p indexy --example sessions

use indexy::{Db, Options, Result, Tree, TreeOptions, Ttl};
use std::{thread, time::Duration};

/// A short life, so that the example comes to an end.
const IDLE: Duration = Duration::from_millis(300);
/// Of what was sent by mail, whatever is done with it.
const CONFIRM: Duration = Duration::from_millis(100);

struct Sessions(Tree);

impl Sessions {
    fn open(db: &Db) -> Result<Self> {
        let options = TreeOptions::new().ttl(Ttl::Default(IDLE));
        Ok(Self(db.tree_with("sessions", options)?))
    }

    fn log_in(&self, token: &str, user: &str) -> Result<()> {
        self.0.insert(token, user)
    }

    /// Who has this token; the session lives on from now. A session that ended meanwhile is not
    /// brought back: the swap finds nothing to replace.
    fn user(&self, token: &str) -> Result<Option<String>> {
        let Some(user) = self.0.get(token)? else {
            return Ok(None);
        };
        let lives = self.0.compare_and_swap(token, Some(&user), Some(&user))?;
        Ok(lives.then(|| String::from_utf8_lossy(&user).into_owned()))
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("indexy-sessions-{}", std::process::id()));
    {
        let db = Db::open(&dir, Options::new(16 << 20))?;
        let sessions = Sessions::open(&db)?;
        sessions.log_in("token-1", "ann")?;
        sessions.log_in("token-2", "bob")?;
        sessions.0.insert_with_ttl("confirm-3", "carla", CONFIRM)?;

        // Ann goes on working, the others do not.
        for _ in 0..4 {
            thread::sleep(IDLE / 3);
            assert_eq!(sessions.user("token-1")?.as_deref(), Some("ann"));
        }
        assert_eq!(sessions.user("token-2")?, None);
        assert_eq!(sessions.user("confirm-3")?, None);
        println!("{} of 3 are left", sessions.0.len()?);
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
