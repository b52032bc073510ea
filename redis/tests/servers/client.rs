//! A client that shows replies as they are, in either version of the protocol.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A reply, type by type.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Simple(String),
    Error(String),
    Integer(i64),
    Bytes(Vec<u8>),
    Null,
    Bool(bool),
    Double(f64),
    Array(Vec<Reply>),
    Map(Vec<(Reply, Reply)>),
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Reply::Bytes(text.into())
    }
}

impl From<i64> for Reply {
    fn from(number: i64) -> Self {
        Reply::Integer(number)
    }
}

impl Reply {
    pub fn integer(&self) -> i64 {
        match self {
            Reply::Integer(number) => *number,
            Reply::Bool(truth) => (*truth).into(),
            other => panic!("{other:?} is not a number"),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Reply::Bytes(bytes) => bytes,
            Reply::Simple(text) => text.as_bytes(),
            other => panic!("{other:?} is not a string"),
        }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    pub fn array(&self) -> &[Reply] {
        match self {
            Reply::Array(elements) => elements,
            other => panic!("{other:?} is not an array"),
        }
    }

    pub fn error(&self) -> &str {
        match self {
            Reply::Error(text) => text,
            other => panic!("{other:?} is not an error"),
        }
    }

    pub fn ok(&self) {
        assert_eq!(*self, Reply::Simple("OK".into()));
    }

    /// The value in a map, or in an array of names and values.
    pub fn field(&self, name: &str) -> &Reply {
        let found = match self {
            Reply::Map(pairs) => {
                pairs.iter().find(|pair| pair.0 == name.into()).map(|pair| &pair.1)
            }
            Reply::Array(elements) => {
                let mut pairs = elements.chunks_exact(2);
                pairs.find(|pair| pair[0] == name.into()).map(|pair| &pair[1])
            }
            other => panic!("{other:?} has no fields"),
        };
        found.unwrap_or_else(|| panic!("{self:?} has no field {name}"))
    }
}

/// A connection.
pub struct Client {
    stream: BufReader<TcpStream>,
}

/// An argument of a command.
pub trait Argument {
    fn bytes(&self) -> Vec<u8>;
}

impl<T: AsRef<[u8]> + ?Sized> Argument for T {
    fn bytes(&self) -> Vec<u8> {
        self.as_ref().to_vec()
    }
}

impl Client {
    /// Connects, as soon as someone listens.
    pub fn connect(port: u16) -> Self {
        let start = Instant::now();
        loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => {
                    stream.set_nodelay(true).unwrap();
                    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
                    return Client { stream: BufReader::new(stream) };
                }
                Err(error) if start.elapsed() > Duration::from_secs(30) => {
                    panic!("nobody listens at port {port}: {error}")
                }
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Goes on in the third version of the protocol.
    pub fn with_resp3(mut self) -> Self {
        assert!(matches!(self.call(&[&"HELLO", &"3"]), Reply::Map(_)));
        self
    }

    /// Sends a command, given as words between spaces, and returns the reply.
    pub fn ask(&mut self, line: &str) -> Reply {
        let words: Vec<&str> = line.split(' ').collect();
        self.call(&words.iter().map(|word| word as &dyn Argument).collect::<Vec<_>>())
    }

    pub fn call(&mut self, command: &[&dyn Argument]) -> Reply {
        self.try_call(command).expect("the server answers")
    }

    /// The same, where the server may have gone.
    pub fn try_call(&mut self, command: &[&dyn Argument]) -> std::io::Result<Reply> {
        self.send(command)?;
        self.receive()
    }

    /// Sends a command. Its reply is the next one that was not received yet.
    pub fn send(&mut self, command: &[&dyn Argument]) -> std::io::Result<()> {
        let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
        for argument in command.iter().map(|argument| argument.bytes()) {
            bytes.extend(format!("${}\r\n", argument.len()).as_bytes());
            bytes.extend(&argument);
            bytes.extend(b"\r\n");
        }
        self.stream.get_mut().write_all(&bytes)
    }

    pub fn receive(&mut self) -> std::io::Result<Reply> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let Some(line) = line.strip_suffix("\r\n") else {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        };
        let (kind, rest) = line.split_at(1);
        let number = || rest.parse::<i64>().expect("a number");
        Ok(match kind {
            "+" => Reply::Simple(rest.into()),
            "-" => Reply::Error(rest.into()),
            ":" => Reply::Integer(number()),
            "_" => Reply::Null,
            "#" => Reply::Bool(rest == "t"),
            "," => Reply::Double(rest.parse().expect("a number")),
            "$" if number() < 0 => Reply::Null,
            "$" | "=" => {
                let mut bytes = vec![0; number() as usize + 2];
                self.stream.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Reply::Bytes(bytes)
            }
            "*" if number() < 0 => Reply::Null,
            "*" | "~" => {
                let elements = (0..number()).map(|_| self.receive());
                Reply::Array(elements.collect::<Result<_, _>>()?)
            }
            "%" => {
                let pairs = (0..number()).map(|_| Ok((self.receive()?, self.receive()?)));
                Reply::Map(pairs.collect::<std::io::Result<_>>()?)
            }
            _ => panic!("a reply that begins with {line:?}"),
        })
    }
}
