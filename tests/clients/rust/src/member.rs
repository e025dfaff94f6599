//! A member of a group: what it holds, reads and commits, each a line of JSON.

use rdkafka::client::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::KafkaResult;
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const COMMIT_EVERY: Duration = Duration::from_millis(500);

fn tell(event: &str, values: Value) {
    println!("{}", json!({ "event": event, "values": values }));
}

#[derive(Default)]
struct Held(Mutex<BTreeSet<i32>>);

impl ClientContext for Held {}

/// The library ends the program when it is asked for the elements of an empty list.
fn partitions(list: &TopicPartitionList) -> Vec<i32> {
    if list.count() == 0 {
        return Vec::new();
    }
    list.elements().iter().map(|e| e.partition()).collect()
}

impl ConsumerContext for Held {
    fn pre_rebalance(&self, rebalance: &Rebalance<'_>) {
        let mut held = self.0.lock().unwrap();
        match rebalance {
            Rebalance::Assign(list) => held.extend(partitions(list)),
            Rebalance::Revoke(list) => {
                for p in partitions(list) {
                    held.remove(&p);
                }
            }
            Rebalance::Error(e) => tell("failed", json!([e.to_string()])),
        }
        tell("holds", json!(*held));
    }
}

pub struct Member<'a> {
    topic: &'a str,
    consumer: BaseConsumer<Held>,
    unsaved: BTreeMap<i32, i64>,
    saved: Instant,
    count: usize,
}

impl<'a> Member<'a> {
    pub fn new(mut settings: ClientConfig, topic: &'a str, group: &str, protocol: &str,
               options: &[(&str, &str)]) -> KafkaResult<Member<'a>> {
        settings.set("group.id", group).set("enable.auto.commit", "false")
            .set("auto.offset.reset", "earliest").set("partition.assignment.strategy", protocol)
            .set("heartbeat.interval.ms", "1000").set("session.timeout.ms", "6000");
        for (key, value) in options {
            let name = if *key == "instance" { "group.instance.id" } else { "session.timeout.ms" };
            settings.set(name, *value);
        }
        let consumer: BaseConsumer<Held> = settings.create_with_context(Held::default())?;
        consumer.subscribe(&[topic])?;
        Ok(Member { topic, consumer, unsaved: BTreeMap::new(), saved: Instant::now(), count: 0 })
    }

    fn read(&mut self) {
        let (mut records, mut wait) = (Vec::new(), COMMIT_EVERY / 2);
        while let Some(polled) = self.consumer.poll(wait) {
            wait = Duration::from_secs(0);
            match polled {
                Ok(m) => {
                    records.push((m.partition(), m.offset()));
                    self.unsaved.insert(m.partition(), m.offset() + 1);
                }
                Err(e) => tell("failed", json!([e.to_string()])),
            }
            if records.len() == 500 {
                break;
            }
        }
        self.count += records.len();
        if !records.is_empty() {
            tell("read", json!(records));
        }
    }

    fn commit(&mut self) {
        self.saved = Instant::now();
        let held = self.consumer.context().0.lock().unwrap().clone();
        self.unsaved.retain(|p, _| held.contains(p));
        let due: Vec<(i32, i64)> = self.unsaved.iter().map(|(p, o)| (*p, *o)).collect();
        if due.is_empty() {
            return;
        }
        let mut list = TopicPartitionList::new();
        for (p, o) in &due {
            list.add_partition_offset(self.topic, *p, Offset::Offset(*o)).expect("an offset");
        }
        match self.consumer.commit(&list, CommitMode::Sync) {
            Ok(()) => {
                self.unsaved.clear();
                tell("committed", json!(due));
            }
            Err(e) => tell("failed", json!([e.to_string()])),
        }
    }

    /// Until the standard input ends; then it leaves the group.
    pub fn run(mut self) -> Value {
        let ending = Arc::new(AtomicBool::new(false));
        let seen = ending.clone();
        thread::spawn(move || {
            let mut rest = Vec::new();
            std::io::stdin().read_to_end(&mut rest).ok();
            seen.store(true, Ordering::SeqCst);
        });
        while !ending.load(Ordering::SeqCst) {
            self.read();
            if self.saved.elapsed() > COMMIT_EVERY {
                self.commit();
            }
        }
        self.commit();
        json!({ "read": self.count })
    }
}
