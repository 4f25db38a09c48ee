import { readFile } from 'node:fs/promises';
import type { OutgoingHttpHeaders, RequestOptions } from 'node:http';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import type { KubeConfig } from '@kubernetes/client-node';
import { parse } from 'yaml';
import { isRecord } from '../objects/json.ts';
import type { Clock } from './clock.ts';
import {
  type Credentials,
  type Identity,
  type ProxySetting,
  TokenFile,
  tokenLifetime,
  trimSlash,
} from './identity.ts';
import type { KubeConfigSource } from './transport.ts';

/**
 * The identity that a kubeconfig says, by client-node: exec plugins, OIDC, certificates. client-node costs half a
 * second and 80 MB to load, so that only this function loads it.
 *
 * @throws {Error} when there is no usable cluster in it.
 */
export async function kubeConfigIdentity(source: KubeConfigSource, clock: Clock): Promise<Identity> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  if (source.path === undefined) config.loadFromDefault();
  else config.loadFromFile(source.path);
  if (source.context !== undefined) config.setCurrentContext(source.context);
  const cluster = config.getCurrentCluster();
  if (cluster === null) {
    throw new Error(`the kubeconfig has no cluster for the context "${config.getCurrentContext()}"`);
  }
  // What client-node makes up when it finds nothing.
  if (source.path === undefined && cluster.server === 'http://localhost:8080') {
    throw new Error('there is no kubeconfig: set KUBECONFIG, or name a file or a server');
  }
  const file = await tokenFileOf(config, source);
  return new KubeConfigIdentity(config, {
    server: trimSlash(cluster.server),
    proxy:
      cluster.proxyUrl === undefined || cluster.proxyUrl === ''
        ? { kind: 'environment' }
        : { kind: 'uri', uri: cluster.proxyUrl },
    tokenFile: file === undefined ? undefined : new TokenFile(file, clock),
    clock,
  });
}

interface KubeConfigIdentityOptions {
  readonly server: string;
  readonly proxy: ProxySetting;
  readonly tokenFile: TokenFile | undefined;
  readonly clock: Clock;
}

class KubeConfigIdentity implements Identity {
  readonly server: string;
  readonly proxy: ProxySetting;
  readonly #config: KubeConfig;
  readonly #tokenFile: TokenFile | undefined;
  readonly #clock: Clock;
  #credentials: Promise<Credentials> | undefined;
  #readAt = 0;

  constructor(config: KubeConfig, options: KubeConfigIdentityOptions) {
    this.#config = config;
    this.server = options.server;
    this.proxy = options.proxy;
    this.#tokenFile = options.tokenFile;
    this.#clock = options.clock;
  }

  /** Files are read and plugins asked once a minute: plugins keep their own credentials until those expire. */
  credentials(): Promise<Credentials> {
    const now = this.#clock.monotonic();
    if (this.#credentials === undefined || now - this.#readAt >= tokenLifetime) {
      this.#readAt = now;
      const reading = this.#read();
      this.#credentials = reading;
      reading.catch(() => {
        if (this.#credentials === reading) this.#credentials = undefined;
      });
    }
    return this.#credentials;
  }

  refused(): void {
    this.#credentials = undefined;
    this.#tokenFile?.forget();
  }

  async #read(): Promise<Credentials> {
    const options: RequestOptions & Credentials['tls'] = {};
    await this.#config.applyToHTTPSOptions(options);
    const headers = lowerCase(options.headers);
    if (typeof options.auth === 'string') {
      headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
    }
    if (this.#tokenFile !== undefined) headers['authorization'] = `Bearer ${await this.#tokenFile.token()}`;
    const { ca, cert, key, pfx, passphrase, rejectUnauthorized, servername } = options;
    return {
      headers,
      tls: {
        ...(ca !== undefined && { ca }),
        ...(cert !== undefined && { cert }),
        ...(key !== undefined && { key }),
        ...(pfx !== undefined && { pfx }),
        ...(passphrase !== undefined && { passphrase }),
        ...(rejectUnauthorized !== undefined && { rejectUnauthorized }),
        ...(servername !== undefined && { servername }),
      },
    };
  }
}

/** client-node's FileAuth leaves the line end on a token that it read from a file; a header may not hold one. */
function lowerCase(headers: OutgoingHttpHeaders | readonly string[] | undefined): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (typeof value === 'string') result[name.toLowerCase()] = value.trim();
  }
  return result;
}

/** The file that the current user's token is in: the service account's, or `tokenFile`, which client-node does not know. */
async function tokenFileOf(config: KubeConfig, source: KubeConfigSource): Promise<string | undefined> {
  const user = config.getCurrentUser();
  if (user === null) return undefined;
  const provider: unknown = user.authProvider;
  const settings = isRecord(provider) ? provider['config'] : undefined;
  if (isRecord(settings) && typeof settings['tokenFile'] === 'string') return settings['tokenFile'];
  for (const path of candidates(source)) {
    const found = await tokenFileIn(path, user.name);
    if (found !== undefined) return found;
  }
  return undefined;
}

function candidates(source: KubeConfigSource): string[] {
  if (source.path !== undefined) return [source.path];
  const variable = process.env['KUBECONFIG'];
  if (variable !== undefined && variable !== '')
    return variable.split(delimiter).filter((path) => path !== '');
  return [join(homedir(), '.kube', 'config')];
}

async function tokenFileIn(path: string, userName: string): Promise<string | undefined> {
  let document: unknown;
  try {
    document = parse(await readFile(path, 'utf8'));
  } catch {
    return undefined;
  }
  const users = isRecord(document) && Array.isArray(document['users']) ? document['users'] : [];
  for (const entry of users) {
    if (!isRecord(entry) || entry['name'] !== userName || !isRecord(entry['user'])) continue;
    const file = entry['user']['tokenFile'];
    return typeof file === 'string' && file !== '' ? resolve(dirname(path), file) : undefined;
  }
  return undefined;
}
