// One timing of an attention operator by ONNX Runtime, for peers.py.
//
//   node onnxruntime_peer.js           prints the version
//   node onnxruntime_peer.js JOB       runs a job (JSON, from peers.py), prints seconds and error
'use strict';
const ort = require('onnxruntime-node');

/// Where head h of token t begins in the operator's layout.
const start = (job, tokens, h, t) =>
    (job.layout === 'heads' ? h * tokens + t : t * job.heads + h) * job.width;

function uniform(job, tokens) {
    const data = new Float32Array(tokens * job.heads * job.width);
    for (let i = 0; i < data.length; ++i) data[i] = 2 * Math.random() - 1;
    return tensor(job, tokens, data);
}

function tensor(job, tokens, data) {
    const shape = job.layout === 'heads' ? [1, job.heads, tokens, job.width]
                                         : [1, tokens, job.heads * job.width];
    return new ort.Tensor('float32', data, shape);
}

/// One row of the answer by plain loops in float64.
function row(job, q, k, v, h, t) {
    const visible = job.causal ? t + 1 : job.keys;
    const weights = new Float64Array(visible);
    for (let j = 0; j < visible; ++j) {
        const a = start(job, job.queries, h, t), b = start(job, job.keys, h, j);
        for (let c = 0; c < job.width; ++c) weights[j] += q[a + c] * k[b + c];
        weights[j] = Math.exp(weights[j] / Math.sqrt(job.width));
    }
    const sum = weights.reduce((a, b) => a + b);
    const out = new Float64Array(job.width);
    for (let j = 0; j < visible; ++j) {
        const b = start(job, job.keys, h, j);
        for (let c = 0; c < job.width; ++c) out[c] += weights[j] / sum * v[b + c];
    }
    return out;
}

/// The largest error in a few rows of the first and the last head.
function error(job, feeds, answer) {
    let worst = 0;
    for (const h of [0, job.heads - 1])
        for (const t of [0, Math.floor(job.queries / 3), job.queries - 1]) {
            const expected = row(job, feeds.q.data, feeds.k.data, feeds.v.data, h, t);
            const at = start(job, job.queries, h, t);
            for (let c = 0; c < job.width; ++c)
                worst = Math.max(worst, Math.abs(expected[c] - answer[at + c]));
        }
    return worst;
}

async function run(job) {
    const session = await ort.InferenceSession.create(
        job.model, {intraOpNumThreads: job.threads, interOpNumThreads: 1});
    const feeds = {
        q: uniform(job, job.queries), k: uniform(job, job.keys), v: uniform(job, job.keys)};
    if (session.inputNames.includes('last')) {  // GroupQueryAttention counts its keys
        feeds.last = new ort.Tensor('int32', Int32Array.of(job.keys - 1), [1]);
        feeds.total = new ort.Tensor('int32', Int32Array.of(job.keys), [1]);
    }
    const out = tensor(job, job.queries, new Float32Array(feeds.q.data.length));
    const timed = async () => {
        const begin = performance.now();
        const {out: answer} = await session.run(feeds, {out});
        return {seconds: (performance.now() - begin) / 1e3, answer};
    };
    const wrong = error(job, feeds, (await timed()).answer.data);
    if (!(wrong < job.tolerance)) throw new Error(`its answer is wrong by ${wrong}`);
    const until = async (seconds) => {
        const times = [];
        for (let spent = 0; spent < seconds; spent += times.at(-1))
            times.push((await timed()).seconds);
        return times.sort((a, b) => a - b);
    };
    await until(job.seconds / 4);  // warm-up
    const times = await until(job.seconds);
    return {seconds: times[Math.floor(times.length / 2)], error: wrong};
}

const job = process.argv[2];
(job ? run(JSON.parse(job)) : Promise.resolve({version: ort.env.versions.node}))
    .then((answer) => console.log(JSON.stringify(answer)))
    .catch((failure) => {
        console.error(String(failure.message || failure).split('\n')[0]);
        process.exit(1);
    });
