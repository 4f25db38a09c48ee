import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';

const require = createRequire(import.meta.url);

/**
 * The YAML library, loaded when the first YAML comes: it takes 10 MiB, and most clients speak JSON only.
 * Synchronous, since decoders are; Node keeps what it has loaded.
 */
export function yaml(): typeof Yaml {
  return require('yaml') as typeof Yaml;
}
