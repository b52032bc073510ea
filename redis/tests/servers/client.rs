//! A client that shows replies as they are, in either version of the protocol.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
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
    Array(Vec<Reply>),
    Map(Vec<(Reply, Reply)>),
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Reply::Bytes(text.into())
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

/// These numbers as items, with spaces between.
pub fn items(numbers: Range<usize>) -> String {
    numbers.map(|item| item.to_string()).collect::<Vec<_>>().join(" ")
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
        self.try_ask(line).expect("the server answers")
    }

    /// The same, where the server may have gone.
    pub fn try_ask(&mut self, line: &str) -> std::io::Result<Reply> {
        self.send_line(line)?;
        self.receive()
    }

    pub fn send_line(&mut self, line: &str) -> std::io::Result<()> {
        let words: Vec<&str> = line.split(' ').collect();
        self.send(&words.iter().map(|word| word as &dyn Argument).collect::<Vec<_>>())
    }

    pub fn call(&mut self, command: &[&dyn Argument]) -> Reply {
        self.send(command).and_then(|()| self.receive()).expect("the server answers")
    }

    /// Loads a chunk of a set.
    pub fn load_chunk(&mut self, key: &str, cursor: i64, chunk: &[u8]) -> Reply {
        self.call(&[&"CF.LOADCHUNK", &key, &cursor.to_string(), &chunk])
    }

    /// How many items a set says that it has.
    pub fn len(&mut self, key: &str) -> i64 {
        self.ask(&format!("CF.INFO {key}")).field("Number of items inserted").integer()
    }

    /// The bytes of a key.
    pub fn memory(&mut self, key: &str) -> i64 {
        self.ask(&format!("MEMORY USAGE {key}")).integer()
    }

    /// The digest of a key, or of all.
    pub fn digest(&mut self, key: &str) -> String {
        match key {
            "" => self.ask("DEBUG DIGEST").text(),
            _ => self.ask(&format!("DEBUG DIGEST-VALUE {key}")).array()[0].text(),
        }
    }

    /// A figure that the server tells of itself.
    pub fn info(&mut self, section: &str, name: &str) -> String {
        let info = self.ask(&format!("INFO {section}")).text();
        let figure = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        figure.unwrap_or_else(|| panic!("{info} has no {name}")).into()
    }

    /// Whether the server is a replica that has found its primary.
    pub fn follows(&mut self) -> bool {
        self.ask("INFO replication").text().contains("master_link_status:up")
    }

    /// Does something with these numbers, ten thousand at a time, and returns the answers.
    pub fn many(&mut self, command: &str, numbers: Range<usize>) -> Vec<i64> {
        let firsts = numbers.clone().step_by(10_000);
        let lines = firsts.map(|first| {
            let some = first..numbers.end.min(first + 10_000);
            format!("{command} {}", items(some))
        });
        let answers = lines.map(|line| self.ask(&line));
        answers.flat_map(|all| all.array().iter().map(Reply::integer).collect::<Vec<_>>()).collect()
    }

    /// Adds these numbers.
    pub fn insert(&mut self, key: &str, numbers: Range<usize>) {
        self.many(&format!("CF.INSERT {key} ITEMS"), numbers);
    }

    /// Deletes these numbers, and returns how many were there.
    pub fn delete(&mut self, key: &str, numbers: Range<usize>) -> i64 {
        let mut deleted = 0;
        for first in numbers.clone().step_by(1_000) {
            let some = first..numbers.end.min(first + 1_000);
            some.clone().for_each(|item| self.send_line(&format!("CF.DEL {key} {item}")).unwrap());
            deleted += some.map(|_| self.receive().expect("a reply").integer()).sum::<i64>();
        }
        deleted
    }

    /// Whether all of these numbers are there.
    pub fn has_all(&mut self, key: &str, numbers: Range<usize>) -> bool {
        self.many(&format!("CF.MEXISTS {key}"), numbers).iter().all(|found| *found == 1)
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
