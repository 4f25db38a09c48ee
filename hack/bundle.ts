/**
 * Bundles src into `dist`: to load a module takes Node.js about a millisecond, and `up` loads hundreds of them. What is
 * loaded late stays a file of its own, and packages stay outside: npm installs them. `tsc -p tsconfig.build.json` adds
 * the types of `servicenet/testing`.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';

const root = join(import.meta.dirname, '..');

/** Files that are named elsewhere: by package.json, or by src/paths.ts. They keep their places. */
const entries: Readonly<Record<string, string>> = {
  main: 'main.js',
  'testing/index': 'testing/index.ts',
  'commands/local-cluster/worker': 'commands/local-cluster/worker.ts',
  'commands/local-cluster/network-process': 'commands/local-cluster/network-process.ts',
  'commands/local-cluster/built-in-programs': 'commands/local-cluster/built-in-programs.ts',
  'page/process': 'page/process.ts',
  'commands/workers/process': 'commands/workers/process.ts',
};

/** JSON stays text until it is loaded: V8 parses that faster than a literal, and keeps no functions for it. */
const jsonAsText: Plugin = {
  name: 'json-as-text',
  load: {
    filter: { id: /\.json$/ },
    handler: (path) => {
      const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
      const text = JSON.stringify(JSON.stringify(value));
      return { code: `export default JSON.parse(${text});\n`, moduleType: 'js' };
    },
  },
};

const bundle = await rolldown({
  input: Object.fromEntries(Object.entries(entries).map(([name, file]) => [name, join(root, 'src', file)])),
  platform: 'node',
  tsconfig: false,
  // Names of packages and of Node.js' modules; ours are paths.
  external: /^[^./]/,
  plugins: [jsonAsText],
  // A warning is a mistake here: a circle, a name that is not exported, a file that is not found.
  onLog: (level, log) => {
    if (level !== 'debug' && level !== 'info') throw new Error(log.message);
  },
});
await bundle.write({
  dir: join(root, 'dist'),
  format: 'esm',
  entryFileNames: '[name].js',
  // src/paths.ts finds files from its own place.
  codeSplitting: { groups: [{ name: 'paths', test: /\/src\/paths\.ts$/ }] },
  chunkFileNames: ({ name }) => (name === 'paths' ? 'paths.js' : 'chunks/[name]-[hash].js'),
  comments: { annotation: false, jsdoc: false, legal: true },
});
await bundle.close();
