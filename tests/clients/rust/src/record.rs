//! Records in the text form of the command line and in the JSON of the answers.

use rdkafka::message::{Header, Headers, Message, OwnedHeaders};
use serde_json::{json, Value};

#[derive(Default)]
pub struct Record {
    pub timestamp: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn pack(data: &[u8]) -> String {
    let mut text = String::new();
    for three in data.chunks(3) {
        let mut bits = 0u32;
        for i in 0..3 {
            bits = bits << 8 | u32::from(*three.get(i).unwrap_or(&0));
        }
        for i in 0..4 {
            text.push(if i <= three.len() {
                LETTERS[(bits >> (18 - 6 * i) & 63) as usize] as char
            } else {
                '='
            });
        }
    }
    text
}

fn unpack(text: &str) -> Option<Vec<u8>> {
    if text == "-" {
        return None;
    }
    let (mut data, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for letter in text.bytes().take_while(|b| *b != b'=') {
        let six = LETTERS.iter().position(|l| *l == letter).expect("base64");
        bits = bits << 6 | six as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            data.push((bits >> count & 255) as u8);
        }
    }
    Some(data)
}

/// Reads a file of one line a record.
pub fn read(path: &str) -> Vec<Record> {
    let text = std::fs::read_to_string(path).expect("a file of records");
    text.lines().map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let headers = fields[3].split(',').filter(|h| !h.is_empty()).map(|h| {
            let (name, value) = h.split_once(':').expect("name:value");
            let name = String::from_utf8(unpack(name).expect("a name")).expect("UTF-8");
            (name, unpack(value))
        }).collect();
        Record {
            timestamp: fields[0].parse().expect("a timestamp"),
            key: unpack(fields[1]),
            value: unpack(fields[2]),
            headers,
        }
    }).collect()
}

impl Record {
    pub fn of_value(value: Vec<u8>) -> Record {
        Record { value: Some(value), ..Record::default() }
    }

    pub fn owned_headers(&self) -> OwnedHeaders {
        self.headers.iter().fold(OwnedHeaders::new(), |all, (key, value)| {
            all.insert(Header { key, value: value.as_ref() })
        })
    }
}

fn packed(data: Option<&[u8]>) -> Value {
    data.map_or(Value::Null, |d| Value::String(pack(d)))
}

/// [offset, timestamp, key, value, [[name, value]]]
pub fn shown<M: Message>(m: &M) -> Value {
    let mut headers = Vec::new();
    if let Some(all) = m.headers() {
        for h in all.iter() {
            headers.push(json!([h.key, packed(h.value)]));
        }
    }
    json!([m.offset(), m.timestamp().to_millis(), packed(m.key()), packed(m.payload()), headers])
}
