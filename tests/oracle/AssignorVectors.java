import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * What Kafka's own assignors make of random groups.
 *
 *   AssignorVectors SEED COUNT
 *
 * For each group: a line `case ASSIGNOR homogeneous|mixed`, a line `topic NUMBER PARTITIONS` for
 * each topic, and a line `member ID INSTANCE|- TOPICS PREVIOUS RESULT` for each member. TOPICS are
 * numbers, PREVIOUS and RESULT are TOPIC:PARTITION, each joined by commas, `-` for none. Members
 * and topics come to the assignors in ascending order, so that nothing else decides: ids of topics
 * are small, which makes Java's hash tables keep that order as well.
 */
public class AssignorVectors {
    static class Member {
        Optional<String> instance = Optional.empty();
        TreeSet<Integer> topics = new TreeSet<>();
        TreeMap<Integer, TreeSet<Integer>> previous = new TreeMap<>();
    }

    public static void main(String[] args) {
        Random random = new Random(Long.parseLong(args[0]));
        for (int i = 0; i < Integer.parseInt(args[1]); i++) one(random);
    }

    static void one(Random random) {
        boolean range = random.nextInt(4) == 0;
        boolean mixed = random.nextBoolean();
        int topicCount = 1 + random.nextInt(6);
        TreeMap<Integer, Integer> topics = new TreeMap<>();
        for (int t = 1; t <= topicCount; t++) topics.put(t, 1 + random.nextInt(12));
        TreeMap<String, Member> members = members(random, mixed, topics);
        if (range) {
            for (Member m : members.values()) m.previous.clear();
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> specs = new TreeMap<>();
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        members.forEach((id, m) -> {
            Map<Uuid, Set<Integer>> previous = new TreeMap<>();
            m.previous.forEach((t, partitions) -> {
                previous.put(new Uuid(0, t), partitions);
                for (int p : partitions) {
                    inverted.computeIfAbsent(new Uuid(0, t), x -> new HashMap<>()).put(p, id);
                }
            });
            TreeSet<Uuid> wanted = new TreeSet<>();
            m.topics.forEach(t -> wanted.add(new Uuid(0, t)));
            specs.put(id, new MemberSubscriptionAndAssignmentImpl(Optional.empty(), m.instance,
                wanted, new Assignment(Collections.unmodifiableMap(previous))));
        });
        ConsumerGroupPartitionAssignor assignor =
            range ? new RangeAssignor() : new UniformAssignor();
        GroupAssignment result = assignor.assign(
            new GroupSpecImpl(Collections.unmodifiableMap(specs),
                mixed ? SubscriptionType.HETEROGENEOUS : SubscriptionType.HOMOGENEOUS, inverted),
            new SubscribedTopicDescriber() {
                public int numPartitions(Uuid id) {
                    return topics.getOrDefault((int) id.getLeastSignificantBits(), -1);
                }

                public Set<String> racksForPartition(Uuid id, int partition) {
                    return Set.of();
                }
            });
        print(assignor.name(), mixed, topics, members, result);
    }

    static TreeMap<String, Member> members(Random random, boolean mixed,
            TreeMap<Integer, Integer> topics) {
        TreeMap<String, Member> members = new TreeMap<>();
        int count = 1 + random.nextInt(8);
        for (int i = 0; i < count; i++) {
            Member m = new Member();
            if (random.nextInt(3) == 0) {
                m.instance = Optional.of("i" + random.nextInt(100) + "-" + i);
            }
            for (int t : topics.keySet()) {
                if (!mixed || random.nextInt(5) < 3) m.topics.add(t);
            }
            members.put("m" + i, m);
        }
        // What they had: of these topics and of one that nobody wants any more.
        List<Member> list = new ArrayList<>(members.values());
        int share = random.nextInt(101);
        TreeMap<Integer, Integer> before = new TreeMap<>(topics);
        before.put(40, 3);
        before.forEach((t, partitions) -> {
            for (int p = 0; p < partitions; p++) {
                if (random.nextInt(100) >= share) continue;
                list.get(random.nextInt(list.size())).previous
                    .computeIfAbsent(t, x -> new TreeSet<>()).add(p);
            }
        });
        return members;
    }

    static void print(String assignor, boolean mixed, TreeMap<Integer, Integer> topics,
            TreeMap<String, Member> members, GroupAssignment result) {
        System.out.println("case " + assignor + (mixed ? " mixed" : " homogeneous"));
        topics.forEach((t, partitions) -> System.out.println("topic " + t + " " + partitions));
        members.forEach((id, m) -> {
            MemberAssignment got = result.members().get(id);
            TreeMap<Integer, TreeSet<Integer>> partitions = new TreeMap<>();
            if (got != null) {
                got.partitions().forEach((t, set) ->
                    partitions.put((int) t.getLeastSignificantBits(), new TreeSet<>(set)));
            }
            List<String> wanted = new ArrayList<>();
            m.topics.forEach(t -> wanted.add("" + t));
            System.out.println("member " + id + " " + m.instance.orElse("-") + " "
                + (wanted.isEmpty() ? "-" : String.join(",", wanted)) + " " + text(m.previous) + " "
                + text(partitions));
        });
    }

    static String text(TreeMap<Integer, TreeSet<Integer>> partitions) {
        List<String> words = new ArrayList<>();
        partitions.forEach((t, set) -> set.forEach(p -> words.add(t + ":" + p)));
        return words.isEmpty() ? "-" : String.join(",", words);
    }
}
