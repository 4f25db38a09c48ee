import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';

const require = createRequire(import.meta.url);

/**
 * The YAML library, loaded when the first YAML comes or goes: it takes 10 MiB, and most clients speak JSON only.
 * Synchronous, since encoders and decoders are; Node keeps what it has loaded.
 */
export function yaml(): typeof Yaml {
  return require('yaml') as typeof Yaml;
}
