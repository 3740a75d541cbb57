//! The protocol of Redis and Valkey (RESP 2) on a TCP connection: commands, and their answers,
//! which are not trusted.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// Longest string of an answer: keys and values have 8 bytes, a message of an error some more.
const MAX_STRING_BYTES: usize = 4096;
/// Most elements of an answer.
const MAX_ELEMENTS: usize = 1 << 20;
/// Longest line: a number, or a message.
const MAX_LINE_BYTES: u64 = 512;
/// Answers in answers: a transaction has two levels.
const MAX_DEPTH: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Nil,
    Number(i64),
    String(Vec<u8>),
    /// `OK`, `QUEUED`.
    Line(String),
    List(Vec<Answer>),
}

/// Appends a command.
pub(super) fn command(words: &[&[u8]], request: &mut Vec<u8>) {
    request.extend(format!("*{}\r\n", words.len()).into_bytes());
    for word in words {
        request.extend(format!("${}\r\n", word.len()).into_bytes());
        request.extend(*word);
        request.extend(b"\r\n");
    }
}

pub(super) struct Connection {
    stream: BufReader<TcpStream>,
    /// Bytes of answers.
    received: u64,
    /// Something failed in the middle of an answer: what comes next is not known.
    is_broken: bool,
}

fn wrong(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

impl Connection {
    pub(super) fn open(server: SocketAddr, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&server, patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self {
            stream: BufReader::new(stream),
            received: 0,
            is_broken: false,
        })
    }

    /// One trip: commands, as many answers, and the bytes of both.
    pub(super) fn ask(&mut self, request: &[u8], answers: usize) -> io::Result<(Vec<Answer>, u64)> {
        if self.is_broken {
            return Err(io::ErrorKind::NotConnected.into());
        }
        self.is_broken = true;
        let before = self.received;
        self.stream.get_mut().write_all(request)?;
        let done = (0..answers).map(|_| self.answer(MAX_DEPTH));
        let done: Vec<Answer> = done.collect::<io::Result<_>>()?;
        self.is_broken = false;
        Ok((done, request.len() as u64 + self.received - before))
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        let read = (&mut self.stream)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)?;
        self.received += read as u64;
        let text = line
            .strip_suffix(b"\r\n")
            .ok_or_else(|| wrong("a line has no end"))?;
        String::from_utf8(text.to_vec()).map_err(|_| wrong("a line is no text"))
    }

    fn answer(&mut self, depth: usize) -> io::Result<Answer> {
        let line = self.line()?;
        let (kind, text) = line
            .split_at_checked(1)
            .ok_or_else(|| wrong("an empty line"))?;
        let number = || {
            text.parse::<i64>()
                .map_err(|_| wrong("a length is no number"))
        };
        match kind {
            "+" => Ok(Answer::Line(text.into())),
            "-" => Err(io::Error::other(format!("the server says: {text}"))),
            ":" => Ok(Answer::Number(number()?)),
            "$" | "*" if number()? == -1 => Ok(Answer::Nil),
            "$" => self.string(number()?),
            "*" => {
                let elements = usize::try_from(number()?).ok();
                let elements = elements.filter(|n| *n <= MAX_ELEMENTS && depth > 0);
                let elements = elements.ok_or_else(|| wrong("a list that is too long"))?;
                let list = (0..elements).map(|_| self.answer(depth - 1));
                Ok(Answer::List(list.collect::<io::Result<_>>()?))
            }
            _ => Err(wrong("an answer of no known kind")),
        }
    }

    fn string(&mut self, bytes: i64) -> io::Result<Answer> {
        let bytes = usize::try_from(bytes).ok();
        let bytes = bytes.filter(|bytes| *bytes <= MAX_STRING_BYTES);
        let mut string = vec![0; bytes.ok_or_else(|| wrong("a string that is too long"))? + 2];
        self.stream.read_exact(&mut string)?;
        self.received += string.len() as u64;
        if string.split_off(string.len() - 2) != b"\r\n" {
            return Err(wrong("a string has no end"));
        }
        Ok(Answer::String(string))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{net::TcpListener, thread};

    /// What becomes of the first answer of a server that says `said`.
    fn hear(said: &'static [u8]) -> io::Result<(Vec<Answer>, u64)> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let server = listener.local_addr().unwrap();
        let speaker = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(said).unwrap();
        });
        let mut connection = Connection::open(server, Duration::from_secs(10)).unwrap();
        let done = connection.ask(b"", 1);
        speaker.join().unwrap();
        if done.is_err() {
            let again = connection.ask(b"", 1).unwrap_err();
            assert_eq!(again.kind(), io::ErrorKind::NotConnected);
        }
        done
    }

    #[test]
    fn answers_are_read_and_counted() {
        let said = b"*4\r\n$3\r\na\r\n\r\n$-1\r\n:-7\r\n+OK\r\n";
        let expected = Answer::List(vec![
            Answer::String(b"a\r\n".to_vec()),
            Answer::Nil,
            Answer::Number(-7),
            Answer::Line("OK".into()),
        ]);
        assert_eq!(hear(said).unwrap(), (vec![expected], said.len() as u64));
        let mut request = Vec::new();
        command(&[b"GET", b"\r\n"], &mut request);
        assert_eq!(request, b"*2\r\n$3\r\nGET\r\n$2\r\n\r\n\r\n");
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        let all: [&[u8]; 11] = [
            b"",
            b"\r\n",
            b"+OK\n",
            b"?\r\n",
            b"$x\r\n",
            b"$-2\r\n",
            b"$99999999999\r\n",
            b"$3\r\nabcde",
            b"*99999999999\r\n",
            b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
            b"-ERR no\r\n",
        ];
        for said in all {
            assert!(hear(said).is_err(), "{}", said.escape_ascii());
        }
    }
}
