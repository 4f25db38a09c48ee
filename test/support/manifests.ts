import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseAllDocuments } from 'yaml';
import { RestMapping } from '../../src/client/discovery.ts';
import type { Transport } from '../../src/client/transport.ts';
import { type KubeObject, isKubeObject } from '../../src/objects/meta.ts';

/** The objects of YAML documents. @throws {Error} for what is no Kubernetes object. */
export function parseManifests(text: string): KubeObject[] {
  return parseAllDocuments(text).flatMap((document) => {
    const value: unknown = document.toJS();
    if (value === null) return [];
    if (!isKubeObject(value)) throw new Error(`no Kubernetes object: ${String(document)}`);
    return [value];
  });
}

/** What `kubectl kustomize` makes of a directory. */
export function kustomize(directory: string): KubeObject[] {
  return parseManifests(execFileSync('kubectl', ['kustomize', directory], { encoding: 'utf8' }));
}

/** The base, or an overlay, with components, as a user's kustomization would have them. */
export function kustomizeWith(components: string | readonly string[], on = 'base'): KubeObject[] {
  const paths = [components].flat().map((component) => `../components/${component}`);
  return kustomizeText(`resources: [../${on}]\ncomponents: [${paths.join(', ')}]\n`);
}

/** What a kustomization in a folder beside `deploy/base` makes. */
export function kustomizeText(text: string): KubeObject[] {
  const directory = mkdtempSync(join(process.cwd(), 'deploy', '.test-'));
  try {
    writeFileSync(join(directory, 'kustomization.yaml'), text);
    return kustomize(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** `Deployment/servicenet`. */
export function nameOf({ kind, metadata }: KubeObject): string {
  return `${kind ?? ''}/${metadata.name ?? ''}`;
}

/** Server-side apply of every object in order, with `fieldValidation=Strict`. Throws what the server refuses. */
export async function applyStrictly(client: Transport, objects: readonly KubeObject[]): Promise<void> {
  for (const object of objects) {
    const path = await pathOf(client, object);
    await client.request('PATCH', path, {
      query: { fieldManager: 'deploy-test', fieldValidation: 'Strict', force: true },
      contentType: 'application/apply-patch+yaml',
      body: object,
    });
  }
}

/** A kind is served a moment after its definition. */
async function pathOf(client: Transport, object: KubeObject): Promise<string> {
  for (let i = 0; ; i++) {
    try {
      return await new RestMapping(client).pathOf(object);
    } catch (error) {
      if (i === 50) throw error;
      await sleep(50);
    }
  }
}
