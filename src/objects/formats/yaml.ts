import type { DocumentOptions, SchemaOptions, Tags } from 'yaml';

/** Tags of YAML 1.1 of which go-yaml makes no values of their own. */
const ignoredTags = new Set(['timestamp', 'binary', 'omap', 'pairs', 'set']);

/**
 * The options by which sigs.k8s.io/yaml, and so kubectl, reads YAML: version 1.1 (`0644` is octal, `yes` a
 * boolean), but times and numbers of base 60 stay texts.
 */
export const kubernetesYaml: Readonly<DocumentOptions & SchemaOptions> = {
  version: '1.1',
  merge: true,
  customTags: (tags) =>
    tags.filter((tag) => typeof tag === 'string' || !isIgnored(tag.tag, tag.format)).map(withoutDot),
};

function isIgnored(tag: string, format: string | undefined): boolean {
  return format === 'TIME' || ignoredTags.has(tag.slice(tag.lastIndexOf(':') + 1));
}

/** A dot alone, as ownership has it for an object itself, is no number. */
function withoutDot(tag: Tags[number]): Tags[number] {
  if (typeof tag === 'string' || tag.collection !== undefined || tag.test?.test('.') !== true) return tag;
  return { ...tag, test: new RegExp(`^(?!\\.$)(?:${tag.test.source})`, tag.test.flags) };
}
