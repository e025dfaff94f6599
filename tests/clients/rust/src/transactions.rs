//! Transactional producers, and the offsets that they commit for a group.

use crate::record::Record;
use crate::{settings, Answer, Client, Delivered, Failure, TIMEOUT};
use rdkafka::consumer::Consumer;
use rdkafka::producer::{BaseProducer, Producer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde_json::{json, Value};

/// One record in each of the two partitions, which are there when it returns.
fn write(producer: &BaseProducer<Delivered>, topic: &str, value: &str) -> Result<(), Failure> {
    for partition in 0..2 {
        Client::deliver(producer, topic, partition, &[Record::of_value(value.into())])?;
    }
    Ok(())
}

impl Client {
    fn transactional(&self, id: &str) -> Result<BaseProducer<Delivered>, Failure> {
        let producer: BaseProducer<Delivered> = settings(&self.bootstrap)
            .set("transactional.id", id)
            .create_with_context(Delivered::default())?;
        producer.init_transactions(TIMEOUT)?;
        Ok(producer)
    }

    pub fn committed(&self, group: &str, topic: &str, partition: i32)
        -> Result<Option<i64>, Failure> {
        let mut list = TopicPartitionList::new();
        list.add_partition(topic, partition);
        let found = self.consumer_of(group, "read_committed")?.committed_offsets(list, TIMEOUT)?;
        let element = &found.elements()[0];
        element.error()?;
        Ok(match element.offset() {
            Offset::Offset(o) => Some(o),
            _ => None,
        })
    }

    pub fn transact(&self, topic: &str, id: &str, group: &str, source: &str) -> Answer {
        let (producer, mut committed) = (self.transactional(id)?, Vec::new());
        for (n, value) in ["commit 0", "abort 1", "commit 2"].iter().enumerate() {
            producer.begin_transaction()?;
            write(&producer, topic, value)?;
            committed.push(self.committed(group, source, 0)?);
            let mut offsets = TopicPartitionList::new();
            offsets.add_partition_offset(source, 0, Offset::Offset(n as i64 + 1))?;
            let consumer = self.consumer_of(group, "read_committed")?;
            let metadata = consumer.group_metadata().expect("metadata of a group");
            producer.send_offsets_to_transaction(&offsets, &metadata, TIMEOUT)?;
            if value.starts_with("commit") {
                producer.commit_transaction(TIMEOUT)?;
            } else {
                producer.abort_transaction(TIMEOUT)?;
            }
        }
        Ok(json!({ "committed": committed }))
    }

    pub fn fence(&self, topic: &str, id: &str) -> Answer {
        let first = self.transactional(id)?;
        first.begin_transaction()?;
        write(&first, topic, "lost")?;
        let second = self.transactional(id)?;
        second.begin_transaction()?;
        write(&second, topic, "kept")?;
        second.commit_transaction(TIMEOUT)?;
        first.commit_transaction(TIMEOUT)?;
        Ok(Value::Null)
    }
}
