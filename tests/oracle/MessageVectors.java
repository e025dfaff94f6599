import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.internals.ImplicitLinkedHashMultiCollection;

/**
 * Requests, responses and their headers as Kafka's own classes write them.
 *
 *   MessageVectors KEY:LOWEST-HIGHEST...      for each API key, the versions to print
 *
 * Prints a line `KEY TYPE VERSION VARIANT HEX` for each. TYPE: request, response, request-header,
 * response-header. VARIANT: default (nothing set), full (every field of the version set to what is
 * not its default, two elements in each array), null (full, but null wherever that is allowed),
 * edge (least and greatest numbers, empty strings, arrays of one), unknown (full, and in each
 * struct tagged fields that no schema has; flexible versions only).
 * Then a line `error CODE NAME RETRIABLE` for each of Kafka's error codes.
 */
public class MessageVectors {
    enum Variant { full, nulls, edge, unknown }

    static int count;  // makes values differ from each other; starts anew with each message

    public static void main(String[] args) throws Exception {
        for (String arg : args) {
            String[] words = arg.split("[:-]");
            ApiMessageType api = ApiMessageType.fromApiKey(Short.parseShort(words[0]));
            short highest = Short.parseShort(words[2]);
            for (short v = Short.parseShort(words[1]); v <= highest; v++) {
                message(api.apiKey(), "request", v, api.newRequest(), api.requestSchemas()[v]);
                message(api.apiKey(), "response", v, api.newResponse(), api.responseSchemas()[v]);
                headers(api, v);
            }
        }
        for (Errors e : Errors.values()) {
            System.out.println("error " + e.code() + " " + e.name() + " "
                + (e.exception() instanceof RetriableException));
        }
    }

    static void message(short key, String type, short version, Message empty, Schema schema)
            throws Exception {
        print(key, type, version, "default", empty, version);
        for (Variant variant : Variant.values()) {
            if (variant == Variant.unknown && !flexible(schema)) continue;
            count = 0;
            Message m = (Message) filled(empty.getClass(), schema, variant);
            print(key, type, version, variant == Variant.nulls ? "null" : variant.name(), m,
                  version);
        }
    }

    static void headers(ApiMessageType api, short version) {
        short requestForm = api.requestHeaderVersion(version);
        short responseForm = api.responseHeaderVersion(version);
        RequestHeaderData request = new RequestHeaderData()
            .setRequestApiKey(api.apiKey())
            .setRequestApiVersion(version)
            .setCorrelationId(0x01020304)
            .setClientId("client-\u00e4");
        ResponseHeaderData response = new ResponseHeaderData().setCorrelationId(-5);
        print(api.apiKey(), "request-header", version, "full", request, requestForm);
        print(api.apiKey(), "response-header", version, "full", response, responseForm);
        request.setClientId(null);
        print(api.apiKey(), "request-header", version, "null", request, requestForm);
        if (requestForm >= 2) {
            addUnknown(request);
            print(api.apiKey(), "request-header", version, "unknown", request, requestForm);
        }
        if (responseForm >= 1) {
            addUnknown(response);
            print(api.apiKey(), "response-header", version, "unknown", response, responseForm);
        }
    }

    static void print(short key, String type, short version, String variant, Message m,
            short form) {
        ByteBuffer bytes = MessageUtil.toByteBufferAccessor(m, form).buffer();
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        System.out.println(key + " " + type + " " + version + " " + variant + " "
            + HexFormat.of().formatHex(copy));
    }

    static boolean flexible(Schema schema) {
        return Arrays.stream(schema.fields()).anyMatch(f -> f.def.type instanceof TaggedFields);
    }

    /** An instance of a generated class with each field set that the version's schema has. */
    static Object filled(Class<?> kind, Schema schema, Variant variant) throws Exception {
        Object made = kind.getConstructor().newInstance();
        List<Field> fields = new ArrayList<>();
        for (BoundField f : schema.fields()) {
            if (f.def.type instanceof TaggedFields) {
                fields.addAll(((TaggedFields) f.def.type).fields().values());
            } else {
                fields.add(f.def);
            }
        }
        Map<String, Method> setters = setters(kind);
        for (Field f : fields) {
            Method setter = setters.get(f.name.replace("_", ""));
            if (setter == null) throw new IllegalStateException(kind + " cannot set " + f.name);
            setter.invoke(made, value(made, setter, f, variant));
        }
        if (variant == Variant.unknown && flexible(schema)) addUnknown((Message) made);
        return made;
    }

    static Map<String, Method> setters(Class<?> kind) {
        Map<String, Method> found = new HashMap<>();
        for (Method m : kind.getDeclaredMethods()) {
            boolean setter = m.getName().startsWith("set") && m.getParameterCount() == 1
                && Modifier.isPublic(m.getModifiers());
            if (setter) found.put(m.getName().substring(3).toLowerCase(), m);
        }
        return found;
    }

    static void addUnknown(Message m) {
        m.unknownTaggedFields().add(new RawTaggedField(500, new byte[0]));
        m.unknownTaggedFields().add(new RawTaggedField(70000, new byte[] {1, 2, (byte) 0xff}));
    }

    static Object value(Object owner, Method setter, Field field, Variant variant)
            throws Exception {
        org.apache.kafka.common.protocol.types.Type type = field.type;
        if (variant == Variant.nulls && type.isNullable()) return null;
        Type java = setter.getGenericParameterTypes()[0];
        Class<?> raw = setter.getParameterTypes()[0];
        if (type.isArray()) {
            Schema below = type.arrayElementType().orElseThrow() instanceof Schema s ? s : null;
            return array(raw, java, below, variant);
        }
        if (type instanceof Schema s) return filled(raw, s, variant);
        if (raw == boolean.class) {
            String getter = setter.getName().substring(3);
            getter = getter.substring(0, 1).toLowerCase() + getter.substring(1);
            Object fresh = owner.getClass().getConstructor().newInstance();
            return !(boolean) owner.getClass().getMethod(getter).invoke(fresh);
        }
        // Java has no unsigned 16 bits: the setter takes an int and refuses what does not fit.
        if (type == org.apache.kafka.common.protocol.types.Type.UINT16) {
            return variant == Variant.edge ? 0xffff : 0x0100 + ++count;
        }
        return scalar(raw, variant);
    }

    static Object array(Class<?> raw, Type java, Schema below, Variant variant) throws Exception {
        boolean isCollection = ImplicitLinkedHashMultiCollection.class.isAssignableFrom(raw);
        Type list = isCollection ? raw.getGenericSuperclass() : java;
        Class<?> element = (Class<?>) ((ParameterizedType) list).getActualTypeArguments()[0];
        List<Object> elements = new ArrayList<>();
        for (int i = 0; i < (variant == Variant.edge ? 1 : 2); i++) {
            elements.add(below == null ? scalar(element, variant)
                : filled(element, below, variant));
        }
        if (!isCollection) return elements;
        Object made = raw.getConstructor().newInstance();
        Method add = raw.getMethod("add", ImplicitLinkedHashMultiCollection.Element.class);
        for (Object e : elements) {
            if (!(boolean) add.invoke(made, e)) throw new IllegalStateException("not added: " + e);
        }
        return made;
    }

    static Object scalar(Class<?> kind, Variant variant) {
        boolean edge = variant == Variant.edge;
        int k = ++count;
        boolean low = k % 2 == 0;
        if (kind == byte.class || kind == Byte.class) {
            return edge ? (low ? Byte.MIN_VALUE : Byte.MAX_VALUE) : (byte) (17 + k % 100);
        }
        if (kind == short.class || kind == Short.class) {
            return edge ? (low ? Short.MIN_VALUE : Short.MAX_VALUE) : (short) (0x0100 + k);
        }
        if (kind == int.class || kind == Integer.class) {
            return edge ? (low ? Integer.MIN_VALUE : Integer.MAX_VALUE) : 0x01020000 + k;
        }
        if (kind == long.class || kind == Long.class) {
            return edge ? (low ? Long.MIN_VALUE : Long.MAX_VALUE) : 0x0102030405060000L + k;
        }
        if (kind == double.class || kind == Double.class) {
            return edge ? (low ? -Double.MAX_VALUE : Double.MIN_VALUE) : 0.125 + k;
        }
        if (kind == String.class) {
            // Some are long enough for a prefix of two bytes, where prefixes are varints.
            return edge ? "" : "s" + k + "\u00fc\u4e16" + (k % 7 == 0 ? "x".repeat(140) : "");
        }
        if (kind == Uuid.class) {
            return edge ? new Uuid(-1, -1)
                : new Uuid(0x0a0b0c0d0e0f0000L + k, 0x1112131415160000L + k);
        }
        byte[] bytes = edge ? new byte[0] : new byte[] {(byte) k, 0, (byte) 0xff, 'b'};
        if (kind == byte[].class) return bytes;
        if (kind == ByteBuffer.class) return ByteBuffer.wrap(bytes);
        return MemoryRecords.readableRecords(ByteBuffer.wrap(bytes));
    }
}
