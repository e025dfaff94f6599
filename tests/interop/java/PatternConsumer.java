import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Reads all topics that match a pattern, which the broker looks up.
 *
 *   PatternConsumer BOOTSTRAP PATTERN
 *
 * Writes to `orders`, reads that, makes `orders-late` and `other-late`, writes to both and reads
 * until something of the former comes. Prints the topics that records came from.
 */
public class PatternConsumer {
    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("group.id", "pattern");
        p.put("group.protocol", "consumer");
        p.put("auto.offset.reset", "earliest");
        TreeSet<String> topics = new TreeSet<>();
        try (KafkaConsumer<String, String> consumer =
                 new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer());
             KafkaProducer<String, String> producer =
                 new KafkaProducer<>(p, new StringSerializer(), new StringSerializer());
             Admin admin = Admin.create(p)) {
            consumer.subscribe(new SubscriptionPattern(args[1]));
            producer.send(new ProducerRecord<>("orders", "one")).get();
            long end = System.currentTimeMillis() + 90_000;
            boolean late = false;
            while (!topics.contains("orders-late") && System.currentTimeMillis() < end) {
                for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(200))) {
                    topics.add(r.topic());
                }
                if (!late && topics.contains("orders")) {
                    late = true;
                    admin.createTopics(List.of(
                        new NewTopic("orders-late", Optional.of(1), Optional.empty()),
                        new NewTopic("other-late", Optional.of(1), Optional.empty()))).all().get();
                    producer.send(new ProducerRecord<>("other-late", "three")).get();
                    producer.send(new ProducerRecord<>("orders-late", "two")).get();
                }
            }
        }
        System.out.println(String.join(" ", topics));
    }
}
