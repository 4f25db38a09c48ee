import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';

const require = createRequire(import.meta.url);

/**
 * The YAML library, loaded with the first YAML: it takes 10 MiB, and most clients send JSON only. Synchronous,
 * since decoders are; Node caches the module.
 */
export function yaml(): typeof Yaml {
  return require('yaml') as typeof Yaml;
}
