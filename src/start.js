// What `npm start` runs instead of main.ts. Node compiles the first file before anything can turn the compile cache
// on: were that file TypeScript, Node would load its type stripper, a WebAssembly module of 14 MiB, for it alone.
import { enableCompileCache } from 'node:module';

enableCompileCache();
await import('./main.ts');
