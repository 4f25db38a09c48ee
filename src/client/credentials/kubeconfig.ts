import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { isRecord, isStringList, type JsonRecord } from '../../objects/json.ts';
import type { KubeConfigSource } from '../transport.ts';
import { readYaml } from '../yaml.ts';
import type { OutgoingHttpHeaders, RequestOptions } from 'node:http';
import type { Cluster, KubeConfig } from '@kubernetes/client-node';
import type { Clock } from '../clock.ts';
import type { ClusterForPlugin, Login } from './login.ts';
import {
  type Credentials,
  type ClientIdentity,
  type ProxySetting,
  TokenFile,
  tokenLifetimeMs,
  trimSlash,
} from './identity.ts';

/**
 * Kubeconfigs. One file with usual credentials is read here. client-node reads all others: it takes 0.5 s of CPU and
 * 80 MB, so that it is loaded for these alone.
 */

/** The name of the extension of a cluster that exec plugins get as `config`. */
const pluginExtension = 'client.authentication.k8s.io/exec';

/** A user of a kubeconfig. */
interface KubeConfigUser {
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
async function readKubeConfigUser(
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

/** What a kubeconfig says of the chosen context. */
interface Chosen {
  readonly cluster: Cluster;
  readonly userName: string;
  /** The token of a Pod's service account. */
  readonly tokenFile: string | undefined;
  /** What requests and connections show; files are read anew. `login`: credentials that need one are left out. */
  read(login: boolean): Promise<RequestOptions & Credentials['tls']>;
}

/**
 * The identity of a kubeconfig. Exec plugins, OIDC and impersonation are done here: client-node's do not ask again after
 * a 401, do not refresh, or are missing.
 *
 * @throws {Error} when it has no usable cluster, or its proxy or user is malformed.
 */
export async function kubeConfigIdentity(source: KubeConfigSource, clock: Clock): Promise<ClientIdentity> {
  const chosen = (await readUsual(source)) ?? (await readByClientNode(source));
  const { cluster, userName } = chosen;
  const user = await readKubeConfigUser(source, userName, cluster.name);
  const login = user === undefined ? undefined : await loginOf(user, cluster, clock);
  const file = user?.tokenFile ?? chosen.tokenFile;
  return new KubeConfigIdentity(() => chosen.read(login !== undefined), {
    server: trimSlash(cluster.server),
    proxy: proxyOf(cluster),
    tokenFile: file === undefined ? undefined : new TokenFile(file, clock),
    login,
    impersonation: user?.impersonation ?? {},
    clock,
  });
}

/** A member of an entry that must be a text, where it is there; null counts as absent. */
const isTextOrAbsent = (value: unknown): value is string | null | undefined =>
  value === undefined || value === null || typeof value === 'string';

/** One file with usual credentials; undefined for all others, and for what client-node finds fault with. */
async function readUsual(source: KubeConfigSource): Promise<Chosen | undefined> {
  const [path, ...more] = candidates(source);
  if (path === undefined || more.length > 0) return undefined;
  const document = await readDocument(path);
  const current = source.context ?? document['current-context'];
  const context = typeof current === 'string' ? named(document['contexts'], current)?.['context'] : undefined;
  if (!isRecord(context)) return undefined;
  const { cluster: name, user: userName } = context;
  if (typeof name !== 'string' || !isTextOrAbsent(userName)) return undefined;
  const cluster = named(document['clusters'], name)?.['cluster'];
  const user = named(document['users'], userName ?? '')?.['user'] ?? {};
  if (!isRecord(cluster) || !isRecord(user)) return undefined;

  const { server } = cluster;
  const {
    'certificate-authority': caFile,
    'certificate-authority-data': caData,
    'tls-server-name': tlsServerName,
    'proxy-url': proxyUrl,
  } = cluster;
  const { token, username, password, 'auth-provider': provider } = user;
  const {
    'client-certificate': certFile,
    'client-certificate-data': certData,
    'client-key': keyFile,
    'client-key-data': keyData,
  } = user;
  if (typeof server !== 'string' || server === '' || user['token-file'] !== undefined) return undefined;
  if (provider !== undefined && provider !== null && !(isRecord(provider) && provider['name'] === 'oidc'))
    return undefined;
  if (!isTextOrAbsent(caFile) || !isTextOrAbsent(caData)) return undefined;
  if (!isTextOrAbsent(tlsServerName) || !isTextOrAbsent(proxyUrl)) return undefined;
  if (!isTextOrAbsent(token) || !isTextOrAbsent(username) || !isTextOrAbsent(password)) return undefined;
  if (!isTextOrAbsent(certFile) || !isTextOrAbsent(certData)) return undefined;
  if (!isTextOrAbsent(keyFile) || !isTextOrAbsent(keyData)) return undefined;

  const folder = dirname(path);
  const bytes = async (file: string | null | undefined, data: string | null | undefined) =>
    file ? readFile(resolve(folder, file)) : data ? Buffer.from(data, 'base64') : undefined;
  const skipTLSVerify = cluster['insecure-skip-tls-verify'] === true;
  return {
    cluster: {
      name,
      server,
      skipTLSVerify,
      ...(caFile ? { caFile: resolve(folder, caFile) } : {}),
      ...(caData ? { caData } : {}),
      ...(tlsServerName ? { tlsServerName } : {}),
      ...(proxyUrl ? { proxyUrl } : {}),
    },
    userName: userName ?? '',
    tokenFile: undefined,
    async read() {
      const [ca, cert, key] = await Promise.all([
        bytes(caFile, caData),
        bytes(certFile, certData),
        bytes(keyFile, keyData),
      ]);
      return {
        ...(token ? { headers: { authorization: `Bearer ${token}` } } : {}),
        ...(username ? { auth: `${username}:${password ?? ''}` } : {}),
        ...(ca && { ca }),
        ...(cert && { cert }),
        ...(key && { key }),
        ...(skipTLSVerify ? { rejectUnauthorized: false } : {}),
        ...(tlsServerName ? { servername: tlsServerName } : {}),
      };
    },
  };
}

/** @throws {Error} when it has no usable cluster. */
async function readByClientNode(source: KubeConfigSource): Promise<Chosen> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  load(config, source.path);
  if (source.context !== undefined) config.setCurrentContext(source.context);
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw new Error(noCluster(config));
  // The default that client-node makes when it finds no configuration.
  if (source.path === undefined && cluster.server === 'http://localhost:8080') {
    throw new Error('there is no kubeconfig: set KUBECONFIG, or name a file or a server');
  }
  // Without a user, client-node leaves out the cluster's authority, too.
  if (config.getCurrentUser() === null) config.loadFromClusterAndUser(cluster, { name: 'anonymous' });
  return {
    cluster,
    userName: config.getCurrentUser()?.name ?? '',
    tokenFile: serviceAccountFile(config),
    async read(login) {
      if (login) {
        for (const member of ['exec', 'authProvider'])
          Reflect.deleteProperty(config.getCurrentUser() ?? {}, member);
      }
      const options: RequestOptions & Credentials['tls'] = {};
      await config.applyToHTTPSOptions(options);
      return options;
    },
  };
}

/** @throws {Error} that names the file, which the errors of Node.js and the parser do not always do. */
function load(config: KubeConfig, path: string | undefined): void {
  try {
    if (path === undefined) config.loadFromDefault();
    else config.loadFromFile(path);
  } catch (error) {
    // The parser draws the position below its first line.
    const [reason = ''] = String(error instanceof Error ? error.message : error).split('\n', 1);
    const file = path ?? process.env['KUBECONFIG'] ?? '~/.kube/config';
    throw new Error(`cannot read the kubeconfig ${file}: ${reason}`, { cause: error });
  }
}

function noCluster(config: KubeConfig): string {
  const known = config.getContexts().map(({ name }) => name);
  const chosen = config.getCurrentContext();
  if (known.length === 0) return 'the kubeconfig has no contexts';
  const problem = known.includes(chosen)
    ? `the context "${chosen}" of the kubeconfig names no cluster that is in it`
    : `the kubeconfig has no context "${chosen}"`;
  return `${problem}; its contexts are ${known.join(', ')} (--context)`;
}

/** The cluster's proxy: an `http`, `https` or `socks5` URL, as client-go takes it (`tools/clientcmd`, parseProxyURL). */
function proxyOf({ name, proxyUrl }: Cluster): ProxySetting {
  if (proxyUrl === undefined || proxyUrl === '') return { kind: 'environment' };
  if (['http:', 'https:', 'socks5:'].includes(URL.parse(proxyUrl)?.protocol ?? '')) {
    return { kind: 'uri', uri: proxyUrl };
  }
  // The URL may contain a password.
  throw new Error(`the proxy-url of the cluster "${name}" is not an http, https or socks5 URL`);
}

async function loginOf(user: KubeConfigUser, cluster: Cluster, clock: Clock): Promise<Login | undefined> {
  const { folder, exec, oidc, pluginConfig } = user;
  if (exec === undefined && oidc === undefined) return undefined;
  // Loaded only where it is used.
  const { execLogin, oidcLogin } = await import('./login.ts');
  const now = (): number => clock.now();
  return exec === undefined
    ? await oidcLogin(oidc, folder, now)
    : await execLogin(exec, folder, () => clusterForPlugin(cluster, pluginConfig), now);
}

/** `ExecCredential.spec.cluster`, with the names of a kubeconfig. */
async function clusterForPlugin(cluster: Cluster, config: unknown): Promise<ClusterForPlugin> {
  const { server, caFile, caData, skipTLSVerify, tlsServerName, proxyUrl } = cluster;
  const authority = caFile ? (await readFile(caFile)).toString('base64') : caData;
  return {
    server,
    ...(authority ? { 'certificate-authority-data': authority } : {}),
    ...(skipTLSVerify ? { 'insecure-skip-tls-verify': true } : {}),
    ...(tlsServerName ? { 'tls-server-name': tlsServerName } : {}),
    ...(proxyUrl ? { 'proxy-url': proxyUrl } : {}),
    ...(config === undefined ? {} : { config }),
  };
}

/** The token of a Pod's service account, cached: client-node would read the file for every request. */
function serviceAccountFile(config: KubeConfig): string | undefined {
  const provider: unknown = config.getCurrentUser()?.authProvider;
  const settings = isRecord(provider) ? provider['config'] : undefined;
  const file = isRecord(settings) ? settings['tokenFile'] : undefined;
  return typeof file === 'string' ? file : undefined;
}

interface KubeConfigIdentityOptions {
  readonly server: string;
  readonly proxy: ProxySetting;
  readonly tokenFile: TokenFile | undefined;
  readonly login: Login | undefined;
  readonly impersonation: Credentials['headers'];
  readonly clock: Clock;
}

class KubeConfigIdentity implements ClientIdentity {
  readonly server: string;
  readonly proxy: ProxySetting;
  readonly #readConfig: () => ReturnType<Chosen['read']>;
  readonly #options: KubeConfigIdentityOptions;
  #credentials: Promise<Credentials> | undefined;
  #readAt = 0;
  #expiresAt = Number.POSITIVE_INFINITY;

  constructor(readConfig: () => ReturnType<Chosen['read']>, options: KubeConfigIdentityOptions) {
    this.#readConfig = readConfig;
    this.#options = options;
    this.server = options.server;
    this.proxy = options.proxy;
  }

  /** Files are read once a minute; a login is refreshed when its credential has expired. */
  credentials(): Promise<Credentials> {
    const { clock } = this.#options;
    const now = clock.monotonic();
    const isOld = now - this.#readAt >= tokenLifetimeMs || clock.now() >= this.#expiresAt;
    if (this.#credentials === undefined || isOld) {
      this.#readAt = now;
      this.#expiresAt = Number.POSITIVE_INFINITY;
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
    this.#options.tokenFile?.forget();
    this.#options.login?.forget();
  }

  async #read(): Promise<Credentials> {
    const { tokenFile, login: provider, impersonation } = this.#options;
    const options = await this.#readConfig();
    const headers = lowerCase(options.headers);
    if (typeof options.auth === 'string') {
      headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
    }
    if (tokenFile !== undefined) headers['authorization'] = `Bearer ${await tokenFile.token()}`;
    const login = await provider?.credential();
    if (login?.expiresAt !== undefined) this.#expiresAt = login.expiresAt;
    if (login?.token !== undefined) headers['authorization'] = `Bearer ${login.token}`;
    const { ca, pfx, passphrase, rejectUnauthorized, servername } = options;
    const { cert, key } = login?.cert === undefined ? options : login;
    return {
      headers: { ...headers, ...impersonation },
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

/** Removes the line end that client-node's FileAuth leaves on a token from a file: it is invalid in a header. */
function lowerCase(headers: OutgoingHttpHeaders | readonly string[] | undefined): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (typeof value === 'string') result[name.toLowerCase()] = value.trim();
  }
  return result;
}
