/** What client-node does not read of a kubeconfig, or does not do as client-go does. */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { isRecord, type JsonRecord } from '../objects/json.ts';
import { type ExecSettings, execSettings } from './exec-plugin.ts';
import { type OidcSettings, oidcSettings } from './oidc.ts';
import type { KubeConfigSource } from './transport.ts';

/** The name of the extension of a cluster that exec plugins get as `config`. */
const pluginExtension = 'client.authentication.k8s.io/exec';

/** A user of a kubeconfig. */
export interface KubeConfigUser {
  /** Where the file is that names the user: paths are relative to it. */
  readonly folder: string;
  /** Absolute. */
  readonly tokenFile?: string;
  readonly exec?: ExecSettings;
  readonly oidc?: OidcSettings;
  /** The headers of impersonation (`as`, `as-uid`, `as-groups`, `as-user-extra`); lower-case names. */
  readonly impersonation: Readonly<Record<string, string | string[]>>;
  /** The extension of the cluster that is meant for exec plugins. */
  readonly pluginConfig?: unknown;
}

const userSchema = z.object({
  tokenFile: z.string().nullish(),
  exec: execSettings.nullish(),
  'auth-provider': z
    .union([
      z.object({ name: z.literal('oidc'), config: oidcSettings }),
      z.object({ name: z.string().refine((name) => name !== 'oidc') }),
    ])
    .nullish(),
  as: z.string().nullish(),
  'as-uid': z.string().nullish(),
  'as-groups': z.array(z.string()).nullish(),
  'as-user-extra': z.record(z.string(), z.array(z.string())).nullish(),
});

/**
 * Reads a user from the first file of a source that has it; undefined when none has.
 *
 * @throws {Error} when the user is malformed.
 */
export async function readKubeConfigUser(
  source: KubeConfigSource,
  userName: string,
  clusterName: string,
): Promise<KubeConfigUser | undefined> {
  for (const path of candidates(source)) {
    const document = await readDocument(path);
    const found = named(document['users'], userName)?.['user'];
    if (found === undefined) continue;
    const parsed = userSchema.safeParse(found);
    if (!parsed.success) {
      throw new Error(`the user "${userName}" of ${path} is not valid: ${z.prettifyError(parsed.error)}`);
    }
    return toUser(parsed.data, dirname(path), named(document['clusters'], clusterName)?.['cluster']);
  }
  return undefined;
}

function toUser(user: z.infer<typeof userSchema>, folder: string, cluster: unknown): KubeConfigUser {
  const { tokenFile, exec } = user;
  const provider = user['auth-provider'];
  const oidc = provider && 'config' in provider ? provider.config : undefined;
  const extension = isRecord(cluster)
    ? named(cluster['extensions'], pluginExtension)?.['extension']
    : undefined;
  return {
    folder,
    ...(tokenFile ? { tokenFile: resolve(folder, tokenFile) } : {}),
    ...(exec ? { exec } : {}),
    ...(oidc === undefined ? {} : { oidc }),
    impersonation: impersonationOf(user),
    ...(extension === undefined ? {} : { pluginConfig: extension }),
  };
}

/** As client-go's `transport/round_trippers.go` sends it. */
function impersonationOf(user: z.infer<typeof userSchema>): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  if (user.as) headers['impersonate-user'] = user.as;
  if (user['as-uid']) headers['impersonate-uid'] = user['as-uid'];
  if (user['as-groups']?.length) headers['impersonate-group'] = user['as-groups'];
  for (const [key, values] of Object.entries(user['as-user-extra'] ?? {})) {
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
    const document: unknown = parse(await readFile(path, 'utf8'));
    return isRecord(document) ? document : {};
  } catch {
    // In a Pod there is none; where there should be one, client-node has told of it.
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
