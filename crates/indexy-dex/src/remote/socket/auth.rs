//! Both ends prove that they know the secret: HMAC-SHA256 over the role and both nonces.
//!
//! ```text
//! client                         server
//! hello, nonce of the client ->
//!                            <-  nonce of the server, proof of the server
//! proof of the client        ->
//! ```
//!
//! A recorded connection proves nothing later: each end chose a nonce of its own.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::io::{self, Read, Write};

const HELLO: [u8; 8] = *b"DEXVERB1";
const NONCE_BYTES: usize = 16;
const PROOF_BYTES: usize = 32;

type Nonce = [u8; NONCE_BYTES];

/// What compute servers and memory servers of one pool share.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// At least 16 bytes; take them from a random source.
    pub fn new(bytes: impl Into<Vec<u8>>) -> crate::error::Result<Self> {
        let bytes = bytes.into();
        if bytes.len() < 16 {
            let what = "a secret has 16 bytes or more".into();
            return Err(crate::error::Error::Options(what));
        }
        Ok(Self(bytes))
    }

    fn mac(&self, role: &[u8], client: &Nonce, server: &Nonce) -> io::Result<Hmac<Sha256>> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0);
        let mut mac = mac.map_err(|_| denied("the secret cannot be used"))?;
        for part in [role, client, server] {
            mac.update(part);
        }
        Ok(mac)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

fn denied(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, what)
}

fn array<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The client's part.
pub(crate) fn as_client(stream: &mut (impl Read + Write), secret: &Secret) -> io::Result<()> {
    let own: Nonce = rand::random();
    stream.write_all(&HELLO)?;
    stream.write_all(&own)?;
    stream.flush()?;
    let other: Nonce = array(stream)?;
    let proof: [u8; PROOF_BYTES] = array(stream)?;
    let expected = secret.mac(b"server", &own, &other)?;
    let known = expected.verify_slice(&proof);
    known.map_err(|_| denied("the memory server does not know the secret"))?;
    let proof = secret.mac(b"client", &own, &other)?.finalize();
    stream.write_all(&proof.into_bytes())?;
    stream.flush()
}

/// The server's part.
pub(crate) fn as_server(stream: &mut (impl Read + Write), secret: &Secret) -> io::Result<()> {
    if array(stream)? != HELLO {
        return Err(denied("the client speaks something else"));
    }
    let other: Nonce = array(stream)?;
    let own: Nonce = rand::random();
    let proof = secret.mac(b"server", &other, &own)?.finalize();
    stream.write_all(&own)?;
    stream.write_all(&proof.into_bytes())?;
    stream.flush()?;
    let proof: [u8; PROOF_BYTES] = array(stream)?;
    let expected = secret.mac(b"client", &other, &own)?;
    let known = expected.verify_slice(&proof);
    known.map_err(|_| denied("the client does not know the secret"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::net::UnixStream, thread};

    fn meet(client: &str, server: &str) -> (io::Result<()>, io::Result<()>) {
        let secret = |word: &str| Secret::new(word.repeat(16)).unwrap();
        let (client, server) = (secret(client), secret(server));
        let (mut here, mut there) = UnixStream::pair().unwrap();
        let other = thread::spawn(move || as_server(&mut there, &server));
        let this = as_client(&mut here, &client);
        drop(here);
        (this, other.join().unwrap())
    }

    #[test]
    fn who_knows_the_secret_is_let_in() {
        let (client, server) = meet("a", "a");
        client.unwrap();
        server.unwrap();
    }

    #[test]
    fn who_does_not_is_refused_by_both() {
        let (client, server) = meet("a", "b");
        assert_eq!(client.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(server.is_err());
    }

    #[test]
    fn a_client_that_guesses_is_refused() {
        let secret = Secret::new("s".repeat(16)).unwrap();
        let (mut here, mut there) = UnixStream::pair().unwrap();
        let other = thread::spawn(move || as_server(&mut there, &secret));
        here.write_all(&HELLO).unwrap();
        here.write_all(&[1; NONCE_BYTES]).unwrap();
        let _: [u8; NONCE_BYTES + PROOF_BYTES] = array(&mut here).unwrap();
        here.write_all(&[0; PROOF_BYTES]).unwrap();
        let refused = other.join().unwrap().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_short_secret_is_no_secret() {
        assert!(Secret::new("short").is_err());
    }
}
