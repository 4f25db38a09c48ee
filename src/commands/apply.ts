import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { RestMapping } from '../client/discovery.ts';
import type { Transport } from '../client/transport.ts';
import { pushAll } from '../objects/lists.ts';
import type { KubeObject } from '../objects/meta.ts';
import { errorMessage } from '../objects/status.ts';

const fieldManager = 'servicenet-up';

/** A file of Kubernetes objects in YAML or JSON. */
export interface Manifest {
  /** Its path, or `-` for standard input. */
  readonly file: string;
  readonly objects: readonly KubeObject[];
}

/** Reads files; `-` is standard input. @throws {Error} naming the file that cannot be read, or holds something else. */
export async function readManifests(files: readonly string[]): Promise<readonly Manifest[]> {
  const manifests: Manifest[] = [];
  for (const file of files) {
    const yaml = file === '-' ? await text(process.stdin) : await readText(file);
    manifests.push({ file, objects: await objectsOf(file, yaml) });
  }
  return manifests;
}

/**
 * Applies the objects of manifests in their order, by server-side apply.
 * @returns one line for each object, such as `service/catalog`.
 * @throws {Error} naming the file whose content is refused.
 */
export async function applyManifests(client: Transport, manifests: readonly Manifest[]): Promise<string[]> {
  const lines: string[] = [];
  for (const { file, objects } of manifests) {
    try {
      pushAll(lines, await applyObjects(client, objects));
    } catch (error) {
      const why = errorMessage(error);
      throw new Error(`${file}: ${why}`, { cause: error });
    }
  }
  return lines;
}

/**
 * Applies objects in their order, by server-side apply.
 * @returns one line for each object, such as `service/catalog`.
 * @throws {Error} naming the object that is refused.
 */
export async function applyObjects(client: Transport, objects: readonly KubeObject[]): Promise<string[]> {
  const mapping = new RestMapping(client);
  const lines: string[] = [];
  for (const object of objects) {
    const { kind = '' } = object;
    const { name = '' } = object.metadata;
    const path = await mapping.pathOf(object);
    try {
      await client.request('PATCH', path, {
        query: { fieldManager, force: true },
        contentType: 'application/apply-patch+yaml',
        body: object,
      });
    } catch (error) {
      const why = errorMessage(error);
      throw new Error(`${kind} ${name}: ${why}`, { cause: error });
    }
    lines.push(`${kind.toLowerCase()}/${name}`);
  }
  return lines;
}

/** The objects of a manifest. @throws {Error} naming the file. */
async function objectsOf(file: string, yaml: string): Promise<KubeObject[]> {
  // Loaded only here: most starts apply nothing, and the library takes 10 MiB.
  const { objectsInYaml } = await import('../client/yaml.ts');
  try {
    return objectsInYaml(yaml);
  } catch (error) {
    throw new Error(`${file}: ${errorMessage(error)}`, { cause: error });
  }
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new Error(`cannot read ${file}: ${errorMessage(error)}`, {
      cause: error,
    });
  }
}
