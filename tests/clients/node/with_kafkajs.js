// kafkajs, whose consumers know nothing but groups, with codecs of other packages: its own is gzip.
'use strict'
const fs = require('fs')
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel,
  PartitionAssigners, Partitioners } = require('kafkajs')
const lz4 = require('lz4js')
const xxh32 = require('lz4js/xxh32.js')
const snappy = require('snappyjs')
const zstd = require('@bokuweb/zstd-wasm')
const { version } = require('kafkajs/package.json')

const TIMEOUT_MS = 15000
const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy, lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD }
const XERIAL = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0])

// Snappy comes raw, or in the frames of the Java library.
function unsnap(data) {
  if (!data.subarray(0, 8).equals(XERIAL)) return snappy.uncompress(data)
  const parts = []
  for (let at = 16; at < data.length;) {
    const size = data.readInt32BE(at)
    parts.push(snappy.uncompress(data.subarray(at + 4, at + 4 + size)))
    at += 4 + size
  }
  return Buffer.concat(parts)
}

CompressionCodecs[CompressionTypes.Snappy] = () => ({
  compress: async encoder => Buffer.from(snappy.compress(encoder.buffer)),
  decompress: async data => Buffer.from(unsnap(data))
})
// Kafka takes only frames whose blocks are independent. lz4js does not claim that of its one block
// (of up to 4 MiB): the flag is set and the header's checksum made anew.
function independent(frame) {
  frame[4] |= 0x20
  frame[6] = (xxh32.hash(0, frame, 4, 2) >> 8) & 0xff
  return frame
}

CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => independent(Buffer.from(lz4.compress(encoder.buffer))),
  decompress: async data => Buffer.from(lz4.decompress(data))
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from(zstd.compress(encoder.buffer)),
  decompress: async data => Buffer.from(zstd.decompress(data))
})

const kafka = new Kafka({ clientId: 'calque-clients', brokers: [process.argv[2]],
  logLevel: logLevel.NOTHING, requestTimeout: 10000,
  retry: { retries: 2, initialRetryTime: 100, maxRetryTime: 500 } })
let made

async function admin() {
  if (!made) {
    made = kafka.admin()
    await made.connect()
  }
  return made
}

const unpack = text => text === '-' ? null : Buffer.from(text, 'base64')
const pack = data => data === null || data === undefined ? null
  : Buffer.from(data).toString('base64')
const pairs = words => words.map(w => {
  const at = w.indexOf('=')
  return { name: w.slice(0, at), value: w.slice(at + 1) }
})

function records(path) {
  return fs.readFileSync(path, 'utf8').trimEnd().split('\n').map(line => {
    const [timestamp, key, value, headers] = line.split('\t')
    const all = {}
    for (const h of headers ? headers.split(',') : []) {
      const [name, data] = h.split(':')
      const text = unpack(name).toString()
      const value = unpack(data) || Buffer.alloc(0)  // It knows no header without a value.
      // A name that is there twice becomes a list.
      all[text] = text in all ? [].concat(all[text], value) : value
    }
    return { timestamp, key: unpack(key), value: unpack(value), headers: all }
  })
}

async function send(topic, partition, codec, mode, messages) {
  const producer = kafka.producer({ idempotent: mode === 'idempotent',
    maxInFlightRequests: mode === 'idempotent' ? 1 : null, allowAutoTopicCreation: false,
    createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  try {
    const [answer] = await producer.send({ topic, acks: -1, compression: CODECS[codec],
      messages: messages.map(m => ({ ...m, partition: Number(partition) })) })
    const first = Number(answer.baseOffset)
    return { offsets: messages.map((_, i) => first + i) }
  } finally {
    await producer.disconnect()
  }
}

function shown(m) {
  const headers = []
  for (const [name, value] of Object.entries(m.headers || {}))
    for (const one of Array.isArray(value) ? value : [value]) headers.push([name, pack(one)])
  return [Number(m.offset), Number(m.timestamp), pack(m.key), pack(m.value), headers]
}

// Reads with a group of its own; `started` is called once the consumer stands where it should.
async function read(topic, partition, from, count, started = async () => {},
  readUncommitted = false) {
  const consumer = kafka.consumer({ groupId: `g-${topic}-${Date.now()}`, maxWaitTimeInMs: 100,
    allowAutoTopicCreation: false, readUncommitted, retry: { retries: 8 } })
  const got = []
  try {
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: from === 'earliest' })
    await new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`reading ${count} records took too long`)),
        TIMEOUT_MS)
      const end = error => { clearTimeout(late); error ? reject(error) : resolve() }
      consumer.on(consumer.events.CRASH, e => e.payload.restart || end(e.payload.error))
      consumer.on(consumer.events.GROUP_JOIN, () => started(consumer).catch(end))
      consumer.run({ autoCommit: false, eachMessage: async ({ partition: p, message }) => {
        if (p !== Number(partition) || got.length >= count) return
        got.push(shown(message))
        if (got.length === count) end()
      } }).catch(end)
      if (!Number.isNaN(Number(from))) consumer.seek({ topic, partition: Number(partition),
        offset: from })
    })
  } finally {
    await consumer.disconnect()
  }
  return got
}

// Transactions: each value in both partitions of the topic.
const transactional = async transactionalId => {
  const producer = kafka.producer({ transactionalId, idempotent: true, maxInFlightRequests: 1,
    allowAutoTopicCreation: false, createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  return producer
}
const write = (transaction, topic, value) => transaction.send({ topic, acks: -1,
  messages: [0, 1].map(partition => ({ partition, value })) })

async function committed(groupId, topic, partition) {
  const [found] = await (await admin()).fetchOffsets({ groupId, topics: [topic] })
  const at = found.partitions.find(p => p.partition === Number(partition))
  return at && Number(at.offset) >= 0 ? Number(at.offset) : null
}

async function transact(topic, id, group, source) {
  const producer = await transactional(id)
  const seen = []
  try {
    for (const [n, value] of ['commit 0', 'abort 1', 'commit 2'].entries()) {
      const transaction = await producer.transaction()
      await write(transaction, topic, value)
      seen.push(await committed(group, source, 0))
      await transaction.sendOffsets({ consumerGroupId: group, topics: [{ topic: source,
        partitions: [{ partition: 0, offset: String(n + 1) }] }] })
      if (value.startsWith('commit')) await transaction.commit()
      else await transaction.abort()
    }
  } finally {
    await producer.disconnect()
  }
  return { committed: seen }
}

async function fence(topic, id) {
  const first = await transactional(id)
  const second = await transactional(id)
  try {
    const lost = await first.transaction()
    await write(lost, topic, 'lost')
    const kept = await second.transaction()
    await write(kept, topic, 'kept')
    await kept.commit()
    await lost.commit()
  } finally {
    await first.disconnect()
    await second.disconnect()
  }
  return null
}

// What a member of a group holds, reads and commits, each a line of JSON, until the standard input
// ends. Its assigner has a name that no other library knows.
async function member(topic, groupId, protocol, ...options) {
  const { session = 6000 } = Object.fromEntries(pairs(options).map(o => [o.name, o.value]))
  const tell = (event, values) => process.stdout.write(JSON.stringify({ event, values }) + '\n')
  const consumer = kafka.consumer({ groupId, sessionTimeout: Number(session),
    heartbeatInterval: 1000, maxWaitTimeInMs: 250, allowAutoTopicCreation: false,
    partitionAssigners: [PartitionAssigners[protocol]], rebalanceTimeout: 30000,
    retry: { retries: 1000, initialRetryTime: 100, maxRetryTime: 1000 } })
  const unsaved = new Map()
  let count = 0
  const commit = async () => {
    const due = [...unsaved]
    if (!due.length) return
    try {
      await consumer.commitOffsets(due.map(([p, o]) => ({ topic, partition: p,
        offset: String(o) })))
    } catch (error) {
      tell('failed', [String(error.message)])
    }
  }
  // What commitOffsets() returns says nothing while the consumer starts anew.
  consumer.on(consumer.events.COMMIT_OFFSETS, e => {
    const done = e.payload.topics[0].partitions.map(p => [p.partition, Number(p.offset)])
    for (const [p, o] of done) if (unsaved.get(p) === o) unsaved.delete(p)
    tell('committed', done)
  })
  consumer.on(consumer.events.REBALANCING, () => {
    unsaved.clear()
    tell('holds', [])
  })
  consumer.on(consumer.events.GROUP_JOIN, e =>
    tell('holds', (e.payload.memberAssignment[topic] || []).sort((a, b) => a - b)))
  consumer.on(consumer.events.CRASH, e => tell('failed', [String(e.payload.error.message)]))
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({ autoCommit: false, eachBatch: async ({ batch, resolveOffset }) => {
    for (const m of batch.messages) resolveOffset(m.offset)
    count += batch.messages.length
    tell('read', batch.messages.map(m => [batch.partition, Number(m.offset)]))
    unsaved.set(batch.partition, Number(batch.lastOffset()) + 1)
  } })
  const saving = setInterval(commit, 500)
  await new Promise(resolve => process.stdin.on('end', resolve).resume())
  clearInterval(saving)
  await commit()
  await consumer.disconnect()
  return { read: count }
}

async function offset(topic, partition, timestamp) {
  const a = await admin()
  const all = timestamp === undefined ? await a.fetchTopicOffsets(topic)
    : await a.fetchTopicOffsetsByTimestamp(topic, Number(timestamp))
  return all.find(p => p.partition === Number(partition))
}

const create = async (topic, numPartitions, replicationFactor, config) => {
  await (await admin()).createTopics({ waitForLeaders: false, topics: [{ topic,
    numPartitions: Number(numPartitions), replicationFactor: Number(replicationFactor),
    configEntries: pairs(config) }] }) || throwing(36, 'TOPIC_ALREADY_EXISTS')
  return null
}

function throwing(code, type) {
  throw Object.assign(new Error(type), { code, type })
}

const steps = {
  about: async () => ({ version }),
  pause: ms => new Promise(resolve => setTimeout(() => resolve(null), Number(ms))),
  produce: (topic, partition, codec, mode, path) =>
    send(topic, partition, codec, mode, records(path)),
  large: (topic, partition, size) => send(topic, partition, 'none', 'plain',
    [{ key: null, value: Buffer.alloc(Number(size)) }]),
  consume: async (topic, partition, from, count) =>
    ({ records: await read(topic, partition, from, Number(count)) }),
  'consume-isolated': async (topic, partition, isolation, count) => ({ records: await read(topic,
    partition, 'earliest', Number(count), undefined, isolation === 'read_uncommitted') }),
  transact,
  fence,
  committed: async (group, topic, partition) =>
    ({ offset: await committed(group, topic, partition) }),
  tail: async (topic, partition) => {
    const end = Number((await offset(topic, partition)).high)
    const seeking = async consumer => {
      consumer.seek({ topic, partition: Number(partition), offset: String(end) })
      await send(topic, partition, 'none', 'plain', [{ key: null, value: Buffer.from('tail') }])
    }
    return { end, records: await read(topic, partition, 'latest', 1, seeking) }
  },
  member,
  times: async (topic, partition, timestamps) => {
    const offsets = []
    const end = (await offset(topic, partition)).high
    for (const t of timestamps.split(',')) {
      // This library puts the end where the broker finds nothing.
      const found = (await offset(topic, partition, t)).offset
      offsets.push(found === end || found === '-1' ? null : Number(found))
    }
    return { offsets }
  },
  ends: async (topic, partition) => {
    const found = await offset(topic, partition)
    return { earliest: Number(found.low), latest: Number(found.high) }
  },
  create: (topic, partitions, ...config) => create(topic, partitions, 1, config),
  'create-copies': (topic, partitions, copies, ...config) =>
    create(topic, partitions, copies, config),
  list: async () => ({ topics: (await (await admin()).listTopics()).sort() }),
  describe: async topic => {
    const { topics } = await (await admin()).fetchTopicMetadata({ topics: [topic] })
    return { partitions: topics[0].partitions.map(p =>
      [p.partitionId, p.leader, p.replicas, p.isr]) }
  },
  cluster: async () => {
    const c = await (await admin()).describeCluster()
    return { id: c.clusterId, controller: c.controller,
      nodes: c.brokers.map(b => [b.nodeId, b.host, b.port]) }
  },
  configs: async (kind, name) => {
    const { resources } = await (await admin()).describeConfigs({ includeSynonyms: false,
      resources: [{ type: ConfigResourceTypes[kind.toUpperCase()], name }] })
    return { configs: Object.fromEntries(resources[0].configEntries.map(e =>
      [e.configName, e.configValue])) }
  },
  'alter-all': async (topic, ...config) => {
    await (await admin()).alterConfigs({ validateOnly: false, resources: [{
      type: ConfigResourceTypes.TOPIC, name: topic, configEntries: pairs(config) }] })
    return null
  },
  partitions: async (topic, count) => {
    await (await admin()).createPartitions({ topicPartitions: [{ topic, count: Number(count) }] })
    return null
  },
  'delete-records': async (topic, partition, before) => {
    await offset(topic, partition)  // Else it may not know the leader.
    await (await admin()).deleteTopicRecords({ topic, partitions: [
      { partition: Number(partition), offset: before }] })
    return { low: Number((await offset(topic, partition)).low) }
  },
  reassignments: async () => {
    await (await admin()).listPartitionReassignments({})
    return null
  },
  delete: async topic => {
    await (await admin()).deleteTopics({ topics: [topic] })
    return null
  }
}

// The innermost error that has a number of the broker's.
function told(error) {
  const inner = e => e.cause || e.originalError || (e.errors && e.errors[0]) ||
    (e.partitions && e.partitions[0].error)
  for (let e = error; e; e = inner(e))
    if (typeof e.code === 'number' && e.code > 0) return e
  return error
}

async function main() {
  await zstd.init()
  for (const text of process.argv.slice(3)) {
    const [name, ...words] = text.split(':')
    const said = { step: text }
    try {
      if (!steps[name]) throw new Error('unknown step')
      said.ok = await steps[name](...words)
    } catch (error) {
      const e = told(error)
      Object.assign(said, { error: typeof e.code === 'number' ? e.code : null,
        name: e.type || e.name, message: String(e.message).slice(0, 500) })
    }
    process.stdout.write(JSON.stringify(said) + '\n')
  }
  if (made) await made.disconnect()
}

main().then(() => process.exit(0))
