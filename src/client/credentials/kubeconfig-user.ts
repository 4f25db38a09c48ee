/** The parts of a kubeconfig that client-node does not read, or treats differently from client-go. */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { isRecord, isStringList, type JsonRecord } from '../../objects/json.ts';
import type { KubeConfigSource } from '../transport.ts';
import { readYaml } from '../yaml.ts';

/** The name of the extension of a cluster that exec plugins get as `config`. */
const pluginExtension = 'client.authentication.k8s.io/exec';

/** A user of a kubeconfig. */
export interface KubeConfigUser {
  /** The folder of the file that names the user: paths are relative to it. */
  readonly folder: string;
  /** Absolute. */
  readonly tokenFile?: string;
  /** The settings of an exec plugin, not validated yet. */
  readonly exec?: JsonRecord;
  /** The settings of an OpenID Connect provider, not validated yet. */
  readonly oidc?: JsonRecord;
  /** The headers of impersonation (`as`, `as-uid`, `as-groups`, `as-user-extra`); lower-case names. */
  readonly impersonation: Readonly<Record<string, string | string[]>>;
  /** The extension of the cluster for exec plugins. */
  readonly pluginConfig: unknown;
}

/**
 * Reads a user from the first file of a source that has it; undefined when none has.
 *
 * @throws {Error} when its settings of impersonation are malformed: ignoring them would change the identity.
 */
export async function readKubeConfigUser(
  source: KubeConfigSource,
  userName: string,
  clusterName: string,
): Promise<KubeConfigUser | undefined> {
  for (const path of candidates(source)) {
    const document = await readDocument(path);
    const user = named(document['users'], userName)?.['user'];
    if (!isRecord(user)) continue;
    const cluster = named(document['clusters'], clusterName)?.['cluster'];
    const extensions = isRecord(cluster) ? cluster['extensions'] : undefined;
    const { tokenFile, exec } = user;
    const provider = user['auth-provider'];
    const isOidc = isRecord(provider) && provider['name'] === 'oidc';
    const folder = dirname(path);
    return {
      folder,
      ...(typeof tokenFile === 'string' && tokenFile !== '' ? { tokenFile: resolve(folder, tokenFile) } : {}),
      ...(isRecord(exec) ? { exec } : {}),
      ...(isOidc ? { oidc: isRecord(provider['config']) ? provider['config'] : {} } : {}),
      impersonation: impersonationOf(user, `the user "${userName}" of ${path}`),
      pluginConfig: named(extensions, pluginExtension)?.['extension'],
    };
  }
  return undefined;
}

/** As client-go's `transport/round_trippers.go` sends it. */
function impersonationOf(user: JsonRecord, what: string): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  const wrong = (member: string): Error => new Error(`${what} is not valid: ${member} is of the wrong type`);
  for (const [member, header] of [
    ['as', 'impersonate-user'],
    ['as-uid', 'impersonate-uid'],
  ] as const) {
    const value = user[member] ?? '';
    if (typeof value !== 'string') throw wrong(member);
    if (value !== '') headers[header] = value;
  }
  const groups = user['as-groups'] ?? [];
  if (!isStringList(groups)) throw wrong('as-groups');
  if (groups.length > 0) headers['impersonate-group'] = groups;
  const extra = user['as-user-extra'] ?? {};
  if (!isRecord(extra)) throw wrong('as-user-extra');
  for (const [key, values] of Object.entries(extra)) {
    if (!isStringList(values)) throw wrong('as-user-extra');
    headers[`impersonate-extra-${encodeURIComponent(key).toLowerCase()}`] = values;
  }
  return headers;
}

function named(list: unknown, name: string): JsonRecord | undefined {
  if (!Array.isArray(list)) return undefined;
  return list.find((entry: unknown): entry is JsonRecord => isRecord(entry) && entry['name'] === name);
}

async function readDocument(path: string): Promise<JsonRecord> {
  try {
    const [document] = readYaml(await readFile(path, 'utf8'));
    return isRecord(document) ? document : {};
  } catch {
    // Absent in a Pod; elsewhere client-node has reported the missing user.
    return {};
  }
}

function candidates(source: KubeConfigSource): string[] {
  if (source.path !== undefined) return [source.path];
  const variable = process.env['KUBECONFIG'];
  if (variable !== undefined && variable !== '')
    return variable.split(delimiter).filter((path) => path !== '');
  return [join(homedir(), '.kube', 'config')];
}
