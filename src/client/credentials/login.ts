import { Agent, buildConnector, request } from 'undici';
import { isRecord, isStringList, type JsonRecord, parseRecord } from '../../objects/json.ts';
import { parseTime } from '../../objects/formats/time.ts';
import { PeerTrust } from '../../tls/peer-trust.ts';
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { resolve, sep } from 'node:path';

/** The result of a login: a token, or a certificate with its key, in PEM. */
export interface Credential {
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Expiry in milliseconds since 1970; absent: it does not expire. */
  readonly expiresAt?: number;
}

/** Provides credentials that expire, and gets new ones when they have. */
export interface Login {
  /** @throws {Error} when there are none, with a message for the operator. */
  credential(): Promise<Credential>;
  /** Call when the server refused the last one. */
  forget(): void;
}

/**
 * Shortest use of a credential in milliseconds, against a server that refuses all of them and a plugin that returns
 * expired ones.
 */
const shortestUseMs = 10_000;

/** {@link Login} that caches a credential until it expires; concurrent callers share one request. */
class CachedLogin implements Login {
  readonly #obtain: () => Promise<Credential>;
  readonly #now: () => number;
  #current: Promise<Credential & { expiresAt: number }> | undefined;
  #obtainedAt = Number.NEGATIVE_INFINITY;

  /** @param now milliseconds since 1970. */
  constructor(obtain: () => Promise<Credential>, now: () => number) {
    this.#obtain = obtain;
    this.#now = now;
  }

  async credential(): Promise<Credential> {
    const current = this.#current;
    if (current !== undefined) {
      const known = await current;
      if (this.#now() < known.expiresAt) return known;
      // The first caller gets a new one, for all.
      if (this.#current !== current) return this.credential();
    }
    const next = this.#obtain().then((credential) => {
      const { expiresAt = Number.POSITIVE_INFINITY } = credential;
      return { ...credential, expiresAt: Math.max(expiresAt, this.#now() + shortestUseMs) };
    });
    this.#current = next;
    this.#obtainedAt = this.#now();
    next.catch(() => {
      if (this.#current === next) this.#current = undefined;
    });
    return next;
  }

  forget(): void {
    // True when the clock was set back.
    if (Math.abs(this.#now() - this.#obtainedAt) >= shortestUseMs) this.#current = undefined;
  }
}

/** Reads the members of an object that is not ours; null counts as absent. Each method throws for the wrong type. */
class Members {
  readonly #members: JsonRecord;
  readonly #problem: string;

  /** @param problem how the messages begin. */
  constructor(value: unknown, problem: string) {
    this.#problem = problem;
    if (!isRecord(value)) throw new Error(`${problem}: no object`);
    this.#members = value;
  }

  /** @throws {Error} also when it is absent or empty. */
  text(name: string): string {
    return this.optionalText(name) || this.#wrong(name, 'a text');
  }

  optionalText(name: string): string | undefined {
    const value = this.value(name);
    return value === undefined || typeof value === 'string' ? value : this.#wrong(name, 'a text');
  }

  /** @throws {Error} also when it is absent. */
  url(name: string): string {
    const text = this.text(name);
    return URL.canParse(text) ? text : this.#wrong(name, 'a URL');
  }

  flag(name: string): boolean | undefined {
    const value = this.value(name);
    return value === undefined || typeof value === 'boolean' ? value : this.#wrong(name, 'true or false');
  }

  optionalChoice<T extends string>(name: string, choices: readonly T[]): T | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    return choices.find((choice) => choice === value) ?? this.#wrong(name, `one of ${choices.join(', ')}`);
  }

  /** @throws {Error} also when it is absent. */
  choice<T extends string>(name: string, choices: readonly T[]): T {
    return this.optionalChoice(name, choices) ?? this.#wrong(name, `one of ${choices.join(', ')}`);
  }

  texts(name: string): readonly string[] {
    const value = this.value(name) ?? [];
    return isStringList(value) ? value : this.#wrong(name, 'a list of texts');
  }

  objects(name: string): readonly Members[] {
    const value = this.value(name) ?? [];
    if (!Array.isArray(value)) return this.#wrong(name, 'a list');
    const items: readonly unknown[] = value;
    return items.map((item) => new Members(item, this.#problem));
  }

  /** @returns milliseconds since 1970. */
  optionalTime(name: string): number | undefined {
    const text = this.optionalText(name);
    if (text === undefined || text === '') return undefined;
    return parseTime(text) ?? this.#wrong(name, 'an RFC 3339 time');
  }

  value(name: string): unknown {
    return (Object.hasOwn(this.#members, name) ? this.#members[name] : undefined) ?? undefined;
  }

  #wrong(name: string, wanted: string): never {
    throw new Error(`${this.#problem}: ${name} is not ${wanted}`);
  }
}

/** ID tokens of an OpenID Connect provider (client-go's `plugin/pkg/client/auth/oidc`). */

interface OidcSettings {
  readonly 'idp-issuer-url': string;
  readonly 'client-id': string;
  readonly 'client-secret': string | undefined;
  readonly 'id-token': string | undefined;
  readonly 'refresh-token': string | undefined;
  /** A file, PEM. */
  readonly 'idp-certificate-authority': string | undefined;
  /** Base64 of PEM. */
  readonly 'idp-certificate-authority-data': string | undefined;
}

/** @throws {Error} when it is malformed. */
function parseOidcSettings(value: unknown): OidcSettings {
  const members = new Members(value, 'the oidc provider of the kubeconfig is not valid');
  return {
    'idp-issuer-url': members.url('idp-issuer-url'),
    'client-id': members.text('client-id'),
    'client-secret': members.optionalText('client-secret'),
    'id-token': members.optionalText('id-token'),
    'refresh-token': members.optionalText('refresh-token'),
    'idp-certificate-authority': members.optionalText('idp-certificate-authority'),
    'idp-certificate-authority-data': members.optionalText('idp-certificate-authority-data'),
  };
}

/**
 * The login of an OpenID Connect provider.
 *
 * @param settings `users[].user.auth-provider.config` of a kubeconfig.
 * @param folder where the kubeconfig is: paths are relative to it.
 * @param now milliseconds since 1970.
 * @throws {Error} when they are malformed, or the file of authorities cannot be read.
 */
export async function oidcLogin(settings: unknown, folder: string, now: () => number): Promise<Login> {
  const oidc = parseOidcSettings(settings);
  const { 'idp-certificate-authority': file, 'idp-certificate-authority-data': data } = oidc;
  const ca = file ? await readFile(resolve(folder, file)) : data ? Buffer.from(data, 'base64') : undefined;
  const provider = new OidcProvider(oidc, ca, now);
  return new CachedLogin(() => provider.obtain(), now);
}

/** Milliseconds that a provider has to answer. */
const timeoutMs = 30_000;
/** Milliseconds before its expiry from which an ID token counts as expired (`expiryDelta` of oauth2). */
const idTokenMarginMs = 10_000;

/**
 * Provides the ID token of the kubeconfig until it expires, and then new ones for the refresh token. They are kept in
 * memory only: the kubeconfig is not written.
 */
class OidcProvider {
  readonly #settings: OidcSettings;
  readonly #ca: string | Buffer | undefined;
  readonly #now: () => number;
  #idToken: string | undefined;
  #refreshToken: string | undefined;

  /**
   * @param ca the authorities of the provider in PEM; absent: the system's.
   * @param now milliseconds since 1970.
   */
  constructor(settings: OidcSettings, ca: string | Buffer | undefined, now: () => number) {
    this.#settings = settings;
    this.#ca = ca;
    this.#now = now;
    this.#idToken = settings['id-token'];
    this.#refreshToken = settings['refresh-token'];
  }

  /** @throws {Error} when there is no refresh token, or the provider refuses it. */
  async obtain(): Promise<Credential> {
    // A token that the server refused is not used again.
    const first = this.#idToken;
    this.#idToken = undefined;
    if (first !== undefined && expiryOf(first) > this.#now())
      return { token: first, expiresAt: expiryOf(first) };
    const token = await this.#refresh();
    return { token, expiresAt: expiryOf(token) };
  }

  async #refresh(): Promise<string> {
    const { 'idp-issuer-url': issuer, 'client-id': id, 'client-secret': secret } = this.#settings;
    if (this.#refreshToken === undefined) {
      throw new Error(`the ID token of ${issuer} has expired, and the kubeconfig has no refresh-token`);
    }
    const trust = new PeerTrust(this.#ca?.toString());
    const connect = buildConnector({ ...trust.options, allowH2: false, maxCachedSessions: 0 });
    const agent = new Agent({ connect: trust.connector(connect, Date.now), allowH2: false });
    try {
      const base = issuer.endsWith('/') ? issuer.slice(0, -1) : issuer;
      const discovered = await ask(agent, `${base}/.well-known/openid-configuration`, undefined);
      const grant = new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: this.#refreshToken,
        client_id: id,
        ...(secret === undefined || secret === '' ? {} : { client_secret: secret }),
      });
      const granted = await ask(agent, discovered.url('token_endpoint'), grant);
      const idToken = granted.text('id_token');
      // Providers that do not rotate refresh tokens return none.
      this.#refreshToken = granted.optionalText('refresh_token') ?? this.#refreshToken;
      return idToken;
    } finally {
      await agent.close();
    }
  }
}

/** Sends a GET, or a POST of a form. */
async function ask(agent: Agent, url: string, form: URLSearchParams | undefined): Promise<Members> {
  const { statusCode, body } = await request(url, {
    dispatcher: agent,
    method: form === undefined ? 'GET' : 'POST',
    signal: AbortSignal.timeout(timeoutMs),
    ...(form === undefined
      ? {}
      : { body: form.toString(), headers: { 'content-type': 'application/x-www-form-urlencoded' } }),
  });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`${url} answered ${statusCode}: ${text.slice(0, 200)}`);
  return new Members(parseRecord(text), `${url} returned an invalid answer`);
}

/** When an ID token expires, less the margin, in milliseconds since 1970; 0 for a text that is not an ID token. */
function expiryOf(token: string): number {
  const payload = parseRecord(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
  const seconds = payload?.['exp'];
  return typeof seconds === 'number' ? seconds * 1000 - idTokenMarginMs : 0;
}

/** Credentials from a program (client-go's `plugin/pkg/client/auth/exec`, KEP-541). */

interface ExecSettings {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly installHint: string | undefined;
  readonly provideClusterInfo: boolean | undefined;
  readonly interactiveMode: 'Never' | 'IfAvailable' | 'Always' | undefined;
}

/** @throws {Error} when it is malformed. */
function parseExecSettings(value: unknown): ExecSettings {
  const members = new Members(value, 'the exec plugin of the kubeconfig is not valid');
  return {
    apiVersion: members.choice('apiVersion', [
      'client.authentication.k8s.io/v1',
      'client.authentication.k8s.io/v1beta1',
    ]),
    command: members.text('command'),
    args: members.texts('args'),
    env: members
      .objects('env')
      .map((each) => ({ name: each.text('name'), value: each.optionalText('value') ?? '' })),
    installHint: members.optionalText('installHint'),
    provideClusterInfo: members.flag('provideClusterInfo'),
    interactiveMode: members.optionalChoice('interactiveMode', ['Never', 'IfAvailable', 'Always']),
  };
}

/**
 * The login by an exec plugin.
 *
 * @param value `users[].user.exec` of a kubeconfig.
 * @param now milliseconds since 1970.
 * @throws {Error} when the settings are malformed, or the cluster cannot be read.
 */
export async function execLogin(
  value: unknown,
  folder: string,
  readCluster: () => Promise<ClusterForPlugin>,
  now: () => number,
): Promise<Login> {
  const settings = parseExecSettings(value);
  const cluster = await readCluster();
  return new CachedLogin(() => runExecPlugin(settings, folder, cluster), now);
}

/** The cluster as passed to a plugin. */
export type ClusterForPlugin = Readonly<Record<string, unknown>>;

/** Milliseconds after which a plugin is killed: every request waits for it. */
const pluginTimeoutMs = 60_000;
/** Limit in bytes of a plugin's standard output, and of its standard error. */
const largestAnswer = 1024 * 1024;

/**
 * Runs a plugin once, without standard input: there is no user to ask.
 *
 * @param folder where the kubeconfig is: a command with a path is relative to it.
 * @param cluster passed on when the settings ask for it.
 * @throws {Error} when the plugin cannot be run, fails, takes over a minute, or answers something else.
 */
async function runExecPlugin(
  settings: ExecSettings,
  folder: string,
  cluster: ClusterForPlugin,
): Promise<Credential> {
  const { apiVersion, command } = settings;
  const what = `the exec plugin ${command}`;
  if (settings.interactiveMode === 'Always') {
    throw new Error(`${what} needs interactive input (interactiveMode: Always), which is not available here`);
  }
  const spec = { interactive: false, ...(settings.provideClusterInfo === true ? { cluster } : {}) };
  const env = {
    ...process.env,
    KUBERNETES_EXEC_INFO: JSON.stringify({ kind: 'ExecCredential', apiVersion, spec }),
  };
  for (const { name, value } of settings.env) Reflect.set(env, name, value);
  const text = await run(command.includes(sep) ? resolve(folder, command) : command, settings, env, what);
  const problem = `${what} did not return an ExecCredential`;
  const answer = new Members(parseRecord(text), problem);
  answer.choice('kind', ['ExecCredential']);
  const spoken = answer.text('apiVersion');
  if (spoken !== apiVersion) {
    throw new Error(`${what} answered in ${spoken}, the kubeconfig says ${apiVersion}`);
  }
  const status = new Members(answer.value('status'), problem);
  const token = status.optionalText('token');
  const cert = status.optionalText('clientCertificateData');
  const key = status.optionalText('clientKeyData');
  const expiresAt = status.optionalTime('expirationTimestamp');
  if (isText(cert) !== isText(key)) throw new Error(`${what} answered only one of certificate and key`);
  if (!isText(token) && !isText(cert)) throw new Error(`${what} answered neither a token nor a certificate`);
  return {
    ...(isText(token) ? { token } : {}),
    ...(isText(cert) ? { cert } : {}),
    ...(isText(key) ? { key } : {}),
    ...(expiresAt === undefined ? {} : { expiresAt }),
  };
}

function run(
  command: string,
  { args, installHint }: ExecSettings,
  env: NodeJS.ProcessEnv,
  what: string,
): Promise<string> {
  return new Promise((done, failed) => {
    const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    // First: where no descriptor is left, there are no streams, and the error comes later.
    child.on('error', (error) => {
      const hint = isText(installHint) ? `\n${installHint}` : '';
      failed(new Error(`${what} cannot be run: ${error.message}${hint}`, { cause: error }));
    });
    // Not spawn's own timeout: child processes of the plugin may keep its output open.
    const late = setTimeout(() => {
      failed(new Error(`${what} did not finish within ${pluginTimeoutMs / 1000} s`));
      child.kill('SIGKILL');
      child.stdout.destroy();
      child.stderr.destroy();
    }, pluginTimeoutMs);
    let output = '';
    let complaint = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.length > largestAnswer) child.kill();
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      complaint = (complaint + text).slice(-1000);
    });
    child.on('close', (code, signal) => {
      clearTimeout(late);
      if (code === 0) done(output);
      else failed(new Error(`${what} failed (${signal ?? `exit code ${code ?? ''}`}): ${complaint.trim()}`));
    });
  });
}

function isText(value: string | undefined): value is string {
  return value !== undefined && value !== '';
}
