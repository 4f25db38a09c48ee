import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect: unknown = runInNewContext('gc');

/** Bytes of V8's heap that are in use, after a collection. */
export function heapUsed(): number {
  if (typeof collect !== 'function') throw new Error('V8 has no collector to call');
  Reflect.apply(collect, undefined, []);
  return process.memoryUsage().heapUsed;
}
