//! What TCP and Unix sockets have in common.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    os::unix::net::UnixStream,
    time::Duration,
};

/// A connected socket.
pub trait Stream: Read + Write + Send + Sized + 'static {
    /// Another handle of the same connection.
    fn another(&self) -> io::Result<Self>;
    /// Ends the connection for all handles: who reads from it returns.
    fn end(&self);
    /// Longest wait for a read; `None` waits until the connection ends.
    fn set_read_limit(&self, limit: Option<Duration>) -> io::Result<()>;
    /// Longest wait for a write.
    fn set_write_limit(&self, limit: Duration) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn another(&self) -> io::Result<Self> {
        self.try_clone()
    }

    fn end(&self) {
        // An error says that it has ended already.
        let _ = self.shutdown(Shutdown::Both);
    }

    fn set_read_limit(&self, limit: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(limit)
    }

    fn set_write_limit(&self, limit: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(limit))
    }
}

impl Stream for UnixStream {
    fn another(&self) -> io::Result<Self> {
        self.try_clone()
    }

    fn end(&self) {
        // An error says that it has ended already.
        let _ = self.shutdown(Shutdown::Both);
    }

    fn set_read_limit(&self, limit: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(limit)
    }

    fn set_write_limit(&self, limit: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(limit))
    }
}
