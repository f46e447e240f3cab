// ONNX Runtime's turns of against_models.py: a line of JSON comes in for each request, one goes out.
//   {"load": MODEL.onnx, "as": NAME, "threads": N, "ids": BOOL, "shape": [...], "x": FILE, "y": FILE}
//                              in the place of an earlier one of that name; runs once, writes y: {}
//   {"calls": N, "of": NAME}   as often: {"seconds": S, "processor": S}
import fs from 'node:fs';
import { createRequire } from 'node:module';
import readline from 'node:readline';

const require = createRequire(process.argv[2] + '/');
const ort = require('onnxruntime-node');
const loaded = {};

async function answer(request) {
  if (request.load) {
    await loaded[request.as]?.session.release();
    const session = await ort.InferenceSession.create(request.load, {
      intraOpNumThreads: request.threads, interOpNumThreads: 1, executionMode: 'sequential', graphOptimizationLevel: 'all',
      extra: { session: { intra_op: { allow_spinning: request.threads > 1 ? '1' : '0' } } },
    });
    const bytes = fs.readFileSync(request.x);
    const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    const x = request.ids ? new ort.Tensor('int64', new BigInt64Array(buffer), request.shape)
      : new ort.Tensor('float32', new Float32Array(buffer), request.shape);
    const feeds = { [session.inputNames[0]]: x };
    loaded[request.as] = { session, feeds };
    const y = (await session.run(feeds))[session.outputNames[0]].data;
    fs.writeFileSync(request.y, Buffer.from(y.buffer, y.byteOffset, y.byteLength));
    return {};
  }
  const { session, feeds } = loaded[request.of];
  const start = process.hrtime.bigint(), before = process.cpuUsage();
  for (let i = 0; i < request.calls; ++i) await session.run(feeds);
  const { user, system } = process.cpuUsage(before);
  return { seconds: Number(process.hrtime.bigint() - start) / 1e9, processor: (user + system) / 1e6 };
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await answer(JSON.parse(line)).catch((error) => ({ error: String(error) }))));
}
