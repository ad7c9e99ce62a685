// Reads a memory snapshot as PyTorch's viewer does, with the viewer's own functions:
//   node viewer.js DIRECTORY SNAPSHOT
// DIRECTORY has MemoryViz.js and process_alloc_data.js (torch/utils/viz of PyTorch's sources, in no wheel). Of the
// first only the functions are taken that need no page. It prints the most bytes of each device.
'use strict';
const fs = require('fs');
const path = require('path');
const [directory, snapshot] = process.argv.slice(2);

const page = fs.readFileSync(path.join(directory, 'MemoryViz.js'), 'utf8');
const named = name => {
  const begin = page.indexOf(`\nfunction ${name}(`);
  if (begin < 0) {
    throw new Error(`MemoryViz.js has no ${name}`);
  }
  return page.slice(begin, page.indexOf('\n}\n', begin) + 3);
};
const data = fs.readFileSync(path.join(directory, 'process_alloc_data.js'), 'utf8').replace(/^export [\s\S]*?};?\s*$/m, '');
const viewer = new Function(['version_space', 'annotate_snapshot', 'unpickleData'].map(named).join('') + data +
  '\nreturn {unpickleData, annotate_snapshot, process_alloc_data};')();

const bytes = fs.readFileSync(snapshot);
const read = viewer.unpickleData(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
viewer.annotate_snapshot(read);
for (const device of read.device_traces.keys()) {
  // As the page draws it, without and with private pools.
  const peaks = [false, true].map(pools =>
    viewer.process_alloc_data(read, device, false, 15000, pools).max_at_time.reduce((a, b) => Math.max(a, b), 0));
  console.log(peaks.join(' '));
}
