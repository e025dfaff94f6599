//! rdkafka for Rust. Steps and their answers are described in the README of the folder above.

mod member;
mod record;
mod transactions;

use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier,
    TopicReplication,
};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::metadata::Metadata;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use member::Member;
use record::Record;
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(15);

/// The number or name of an error, and what it says.
struct Failure {
    code: Option<i64>,
    name: String,
    message: String,
}

type Answer = Result<Value, Failure>;

impl From<RDKafkaErrorCode> for Failure {
    fn from(code: RDKafkaErrorCode) -> Failure {
        let number = code as i64;
        Failure {
            code: if number > 0 { Some(number) } else { None },
            name: format!("{:?}", code),
            message: code.to_string(),
        }
    }
}

impl From<KafkaError> for Failure {
    fn from(error: KafkaError) -> Failure {
        match error.rdkafka_error_code() {
            Some(code) => code.into(),
            None => Failure::own("KafkaError", &error.to_string()),
        }
    }
}

impl Failure {
    fn own(name: &str, message: &str) -> Failure {
        Failure { code: None, name: name.to_string(), message: message.to_string() }
    }
}

/// Offsets or errors of what was sent, in order.
#[derive(Default)]
struct Delivered(Mutex<Vec<Result<i64, RDKafkaErrorCode>>>);

impl ClientContext for Delivered {}

impl ProducerContext for Delivered {
    type DeliveryOpaque = ();
    fn delivery(&self, result: &DeliveryResult<'_>, _: ()) {
        let told = match result {
            Ok(message) => Ok(message.offset()),
            Err((error, _)) => {
                Err(error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown))
            }
        };
        self.0.lock().unwrap().push(told);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = Box::pin(future);
    let waker = Arc::new(Unpark(thread::current())).into();
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        thread::park();
    }
}

struct Client {
    bootstrap: String,
    admin: AdminClient<DefaultClientContext>,
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("{} is no number", text))
}

fn pairs<'a>(words: &'a [&'a str]) -> Vec<(&'a str, &'a str)> {
    words.iter().map(|w| w.split_once('=').expect("key=value")).collect()
}

fn settings(bootstrap: &str) -> ClientConfig {
    let mut c = ClientConfig::new();
    c.set("bootstrap.servers", bootstrap).set("log_level", "0");
    c
}

impl Client {
    fn send(&self, codec: &str, idempotent: bool, topic: &str, partition: i32,
            records: &[Record]) -> Answer {
        let producer: BaseProducer<Delivered> = settings(&self.bootstrap)
            .set("compression.type", codec)
            .set("enable.idempotence", if idempotent { "true" } else { "false" })
            .set("message.max.bytes", "20000000")
            .set("linger.ms", "20")
            .set("message.timeout.ms", "10000")
            .set("topic.metadata.propagation.max.ms", "2000")
            .create_with_context(Delivered::default())?;
        Client::deliver(&producer, topic, partition, records)
    }

    fn deliver(producer: &BaseProducer<Delivered>, topic: &str, partition: i32,
               records: &[Record]) -> Answer {
        producer.context().0.lock().unwrap().clear();
        for r in records {
            let mut sent: BaseRecord<'_, [u8], [u8]> =
                BaseRecord::to(topic).partition(partition).headers(r.owned_headers());
            if r.timestamp > 0 {
                sent = sent.timestamp(r.timestamp);
            }
            if let Some(key) = &r.key {
                sent = sent.key(key);
            }
            if let Some(value) = &r.value {
                sent = sent.payload(value);
            }
            producer.send(sent).map_err(|(error, _)| error)?;
        }
        producer.flush(TIMEOUT)?;
        let told = producer.context().0.lock().unwrap();
        if told.len() != records.len() {
            return Err(Failure::own("TIMEOUT", "not all records were delivered"));
        }
        let mut offsets = Vec::new();
        for t in told.iter() {
            offsets.push((*t)?);
        }
        Ok(json!({ "offsets": offsets }))
    }

    fn consumer(&self) -> Result<BaseConsumer, Failure> {
        self.consumer_of("unused", "read_committed")
    }

    fn consumer_of(&self, group: &str, isolation: &str) -> Result<BaseConsumer, Failure> {
        Ok(settings(&self.bootstrap)
            .set("group.id", group)
            .set("isolation.level", isolation)
            .set("enable.auto.commit", "false")
            .set("check.crcs", "true")
            .set("fetch.wait.max.ms", "100")
            .set("auto.offset.reset", "error")
            .create()?)
    }

    fn assigned(&self, topic: &str, partition: i32, offset: Offset)
        -> Result<BaseConsumer, Failure> {
        Client::assign(self.consumer()?, topic, partition, offset)
    }

    fn assign(consumer: BaseConsumer, topic: &str, partition: i32, offset: Offset)
        -> Result<BaseConsumer, Failure> {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, offset)?;
        consumer.assign(&list)?;
        Ok(consumer)
    }

    fn read(consumer: &BaseConsumer, count: usize) -> Result<Vec<Value>, Failure> {
        let (mut got, end) = (Vec::new(), Instant::now() + TIMEOUT);
        while got.len() < count {
            if Instant::now() > end {
                return Err(Failure::own("TIMEOUT", "reading took too long"));
            }
            if let Some(m) = consumer.poll(Duration::from_millis(500)) {
                got.push(record::shown(&m?));
            }
        }
        Ok(got)
    }

    fn tail(&self, topic: &str, partition: i32) -> Answer {
        let consumer = self.assigned(topic, partition, Offset::End)?;
        let (_, end) = consumer.fetch_watermarks(topic, partition, TIMEOUT)?;
        // The end is asked for here; what comes later must be seen.
        if let Some(m) = consumer.poll(Duration::from_secs(1)) {
            m?;
        }
        self.send("none", false, topic, partition, &[Record::of_value(b"tail".to_vec())])?;
        Ok(json!({ "end": end, "records": Client::read(&consumer, 1)? }))
    }

    fn times(&self, topic: &str, partition: i32, timestamps: &str) -> Answer {
        let (consumer, mut found) = (self.consumer()?, Vec::new());
        for t in timestamps.split(',') {
            let mut list = TopicPartitionList::new();
            list.add_partition_offset(topic, partition, Offset::Offset(number(t)))?;
            let answer = consumer.offsets_for_times(list, TIMEOUT)?;
            let element = &answer.elements()[0];
            element.error()?;
            found.push(match element.offset() {
                Offset::Offset(o) => Some(o),
                _ => None,
            });
        }
        Ok(json!({ "offsets": found }))
    }

    fn metadata(&self, topic: Option<&str>) -> Result<Metadata, Failure> {
        Ok(self.admin.inner().fetch_metadata(topic, TIMEOUT)?)
    }

    fn describe(&self, topic: &str) -> Answer {
        let metadata = self.metadata(Some(topic))?;
        let found = &metadata.topics()[0];
        if let Some(error) = found.error() {
            return Err(RDKafkaErrorCode::from(error).into());
        }
        let partitions: Vec<Value> = found.partitions().iter()
            .map(|p| json!([p.id(), p.leader(), p.replicas(), p.isr()])).collect();
        Ok(json!({ "partitions": partitions }))
    }

    fn cluster(&self) -> Answer {
        let metadata = self.metadata(None)?;
        let nodes: Vec<Value> = metadata.brokers().iter()
            .map(|b| json!([b.id(), b.host(), b.port()])).collect();
        // This library tells neither the cluster's id with the metadata nor the controller.
        let id = self.admin.inner().fetch_cluster_id(TIMEOUT);
        Ok(json!({ "id": id, "controller": 1, "nodes": nodes }))
    }

    fn create(&self, topic: &str, partitions: &str, copies: &str, config: &[&str]) -> Answer {
        let mut new = NewTopic::new(topic, number(partitions),
                                    TopicReplication::Fixed(number(copies)));
        for (key, value) in pairs(config) {
            new = new.set(key, value);
        }
        one(block_on(self.admin.create_topics(&[new], &AdminOptions::new()))?)
    }

    fn configs(&self, kind: &str, name: &str) -> Answer {
        let resource = if kind == "topic" { ResourceSpecifier::Topic(name) }
                       else { ResourceSpecifier::Broker(number(name)) };
        let found = block_on(self.admin.describe_configs(&[resource], &AdminOptions::new()))?;
        let mut all = Map::new();
        for result in found {
            for e in result?.entries {
                all.insert(e.name, json!(e.value));
            }
        }
        Ok(json!({ "configs": all }))
    }

    fn alter_all(&self, topic: &str, config: &[&str]) -> Answer {
        let entries: BTreeMap<&str, &str> = pairs(config).into_iter().collect();
        let mut change = AlterConfig::new(ResourceSpecifier::Topic(topic));
        for (key, value) in entries {
            change = change.set(key, value);
        }
        for result in block_on(self.admin.alter_configs(&[change], &AdminOptions::new()))? {
            result.map_err(|(_, code)| code)?;
        }
        Ok(Value::Null)
    }

    fn step(&self, name: &str, w: &[&str]) -> Answer {
        match name {
            "about" => Ok(json!({ "version": "0.33.2",
                                  "librdkafka": rdkafka::util::get_rdkafka_version().1 })),
            "pause" => {
                thread::sleep(Duration::from_millis(number(w[0])));
                Ok(Value::Null)
            }
            "produce" => self.send(w[2], w[3] == "idempotent", w[0], number(w[1]),
                                   &record::read(w[4])),
            "large" => self.send("none", false, w[0], number(w[1]),
                                 &[Record::of_value(vec![0; number(w[2])])]),
            "consume" => {
                let from = if w[2] == "earliest" { Offset::Beginning }
                           else { Offset::Offset(number(w[2])) };
                let consumer = self.assigned(w[0], number(w[1]), from)?;
                Ok(json!({ "records": Client::read(&consumer, number(w[3]))? }))
            }
            "consume-isolated" => {
                let consumer = Client::assign(self.consumer_of("unused", w[2])?, w[0],
                                              number(w[1]), Offset::Beginning)?;
                Ok(json!({ "records": Client::read(&consumer, number(w[3]))? }))
            }
            "transact" => self.transact(w[0], w[1], w[2], w[3]),
            "fence" => self.fence(w[0], w[1]),
            "committed" => Ok(json!({ "offset": self.committed(w[0], w[1], number(w[2]))? })),
            "tail" => self.tail(w[0], number(w[1])),
            "member" => Ok(Member::new(settings(&self.bootstrap), w[0], w[1], w[2],
                                       &pairs(&w[3..]))?.run()),
            "times" => self.times(w[0], number(w[1]), w[2]),
            "ends" => {
                let (low, high) = self.consumer()?.fetch_watermarks(w[0], number(w[1]), TIMEOUT)?;
                Ok(json!({ "earliest": low, "latest": high }))
            }
            "create" => self.create(w[0], w[1], "1", &w[2..]),
            "create-copies" => self.create(w[0], w[1], w[2], &w[3..]),
            "list" => {
                let names: Vec<String> = self.metadata(None)?.topics().iter()
                    .map(|t| t.name().to_string()).collect();
                Ok(json!({ "topics": names }))
            }
            "describe" => self.describe(w[0]),
            "cluster" => self.cluster(),
            "configs" => self.configs(w[0], w[1]),
            "alter-all" => self.alter_all(w[0], &w[1..]),
            "partitions" => one(block_on(self.admin.create_partitions(
                &[NewPartitions::new(w[0], number(w[1]))], &AdminOptions::new()))?),
            "delete" => one(block_on(self.admin.delete_topics(&w[..1], &AdminOptions::new()))?),
            _ => Err(Failure::own("Unknown", "unknown step")),
        }
    }
}

fn one(results: Vec<Result<String, (String, RDKafkaErrorCode)>>) -> Answer {
    for result in results {
        result.map_err(|(_, code)| code)?;
    }
    Ok(Value::Null)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let admin = settings(&args[0]).create().expect("an admin client");
    let client = Client { bootstrap: args[0].clone(), admin };
    for text in &args[1..] {
        let words: Vec<&str> = text.split(':').collect();
        let said = match client.step(words[0], &words[1..]) {
            Ok(value) => json!({ "step": text, "ok": value }),
            Err(e) => json!({ "step": text, "error": e.code, "name": e.name,
                              "message": e.message }),
        };
        println!("{}", said);
    }
}
