import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll } from 'vitest';
import {
  type DiskStorageOptions,
  openDiskStorage,
} from '../../../../../src/apiserver/storage/disk/disk-storage.ts';
import { objectKey, type Storage, type Write } from '../../../../../src/apiserver/storage/storage.ts';

/** Names for data directories below one that is removed in the end. */
export function temporaryDirectories(): () => string {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'servicenet-disk-'));
  afterAll(() => fs.rmSync(root, { recursive: true, force: true }));
  let count = 0;
  return () => path.join(root, String(count++));
}

/** Opens a store and collects what it would tell the operator. */
export async function openStore(
  directory: string,
  options: Partial<DiskStorageOptions> = {},
): Promise<{ storage: Storage; warnings: string[] }> {
  const warnings: string[] = [];
  const storage = await openDiskStorage(directory, {
    encode: (object) => JSON.stringify(object),
    retain: { revisions: 1000, milliseconds: 300_000 },
    clock: () => 0,
    onListenerError: (error) => {
      throw error;
    },
    log: { warn: (details, message) => warnings.push(`${message} ${JSON.stringify(details)}`) },
    ...options,
  });
  return { storage, warnings };
}

export const configMapsPrefix = 'core/configmaps/';
export const keyOf = (name: string) => objectKey('', 'configmaps', 'default', name);

/** A write of a ConfigMap with a value. */
export function writeOf(name: string, value = ''): Write {
  return {
    key: keyOf(name),
    expect: 'any',
    object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, annotations: { value } } },
  };
}

/** Everything that a store shows now: the value by name. */
export function contentsOf(storage: Storage): Record<string, string | undefined> {
  const contents: Record<string, string | undefined> = {};
  for (const { object } of storage.list(configMapsPrefix).items) {
    contents[object.metadata.name ?? ''] = object.metadata.annotations?.['value'];
  }
  return contents;
}
