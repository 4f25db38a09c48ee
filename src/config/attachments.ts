import { isDNS1123Label } from '../objects/names.ts';
import { WrongValue } from './errors.ts';
import { type Flags, list, yesOrNo } from './flags.ts';

/** Which networks Pods may name in their annotation. */
export interface AttachmentSettings {
  /** Only those of their own namespace, and of these namespaces. */
  readonly namespaceIsolation: boolean;
  readonly nonIsolatedNamespaces: readonly string[];
}

/** Multus' defaults. */
export const defaultAttachmentSettings: AttachmentSettings = {
  namespaceIsolation: false,
  nonIsolatedNamespaces: ['default'],
};

/** The flags of every command that attaches networks. */
export function attachmentSettings(flags: Flags): AttachmentSettings {
  return {
    namespaceIsolation: flags.read('namespaceIsolation', yesOrNo),
    nonIsolatedNamespaces: flags.read('globalNamespaces', namespaceNames),
  };
}

function namespaceNames(value: unknown): readonly string[] {
  const names = list(value);
  for (const name of names) {
    const [problem] = isDNS1123Label(name);
    if (problem !== undefined) throw new WrongValue(`${name}: ${problem}`);
  }
  return names;
}
