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

/** To Go a dot alone, as ownership has it for an object itself, is no number, and so is not quoted. */
export function withoutDot(tag: Yaml.Tags[number]): Yaml.Tags[number] {
  if (typeof tag === 'string' || tag.collection !== undefined || tag.test?.test('.') !== true) return tag;
  return { ...tag, test: new RegExp(`^(?!\\.$)(?:${tag.test.source})`, tag.test.flags) };
}
