import { Agent, request } from 'undici';
import { z } from 'zod';
import { isRecord } from '../../objects/json.ts';
import { spawn } from 'node:child_process';
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
const shortestUse = 10_000;

/** {@link Login} that caches a credential until it expires; concurrent callers share one request. */
export class CachedLogin implements Login {
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
      return { ...credential, expiresAt: Math.max(expiresAt, this.#now() + shortestUse) };
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
    if (Math.abs(this.#now() - this.#obtainedAt) >= shortestUse) this.#current = undefined;
  }
}

/** ID tokens of an OpenID Connect provider (client-go's `plugin/pkg/client/auth/oidc`). */

/** `users[].user.auth-provider.config` of a kubeconfig. */
const oidcSettings = z.object({
  'idp-issuer-url': z.url(),
  'client-id': z.string().min(1),
  'client-secret': z.string().nullish(),
  'id-token': z.string().nullish(),
  'refresh-token': z.string().nullish(),
  /** A file, PEM. */
  'idp-certificate-authority': z.string().nullish(),
  /** Base64 of PEM. */
  'idp-certificate-authority-data': z.string().nullish(),
});

/** See {@link oidcSettings}. */
type OidcSettings = z.infer<typeof oidcSettings>;

/** @throws {Error} when it is malformed. */
export function parseOidcSettings(value: unknown): OidcSettings {
  const parsed = oidcSettings.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new Error(`the oidc provider of the kubeconfig is not valid: ${z.prettifyError(parsed.error)}`);
}

/** Milliseconds that a provider has to answer. */
const timeoutMs = 30_000;
/** Milliseconds before its expiry from which an ID token counts as expired (`expiryDelta` of oauth2). */
const margin = 10_000;

const discovered = z.object({ token_endpoint: z.url() });
const granted = z.object({ id_token: z.string().min(1), refresh_token: z.string().nullish() });

/**
 * Provides the ID token of the kubeconfig until it expires, and then new ones for the refresh token. They are kept in
 * memory only: the kubeconfig is not written.
 */
export class OidcProvider {
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
    this.#idToken = settings['id-token'] ?? undefined;
    this.#refreshToken = settings['refresh-token'] ?? undefined;
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
    const agent = new Agent(this.#ca === undefined ? {} : { connect: { ca: this.#ca } });
    try {
      const base = issuer.endsWith('/') ? issuer.slice(0, -1) : issuer;
      const place = await ask(agent, `${base}/.well-known/openid-configuration`, undefined, discovered);
      const grant = new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: this.#refreshToken,
        client_id: id,
        ...(secret === undefined || secret === null || secret === '' ? {} : { client_secret: secret }),
      });
      const answer = await ask(agent, place.token_endpoint, grant, granted);
      // Providers that do not rotate refresh tokens return none.
      this.#refreshToken = answer.refresh_token ?? this.#refreshToken;
      return answer.id_token;
    } finally {
      await agent.close();
    }
  }
}

/** Sends a GET, or a POST of a form. */
async function ask<T>(
  agent: Agent,
  url: string,
  form: URLSearchParams | undefined,
  schema: z.ZodType<T>,
): Promise<T> {
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
  const parsed = schema.safeParse(jsonOf(text));
  if (!parsed.success) throw new Error(`${url} returned an invalid answer: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}

/** When an ID token expires, less the margin, in milliseconds since 1970; 0 for a text that is not an ID token. */
function expiryOf(token: string): number {
  const payload = jsonOf(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
  const seconds = isRecord(payload) ? payload['exp'] : undefined;
  return typeof seconds === 'number' ? seconds * 1000 - margin : 0;
}

/** Parsed JSON; undefined for other texts. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Credentials from a program (client-go's `plugin/pkg/client/auth/exec`, KEP-541). */

/** `users[].user.exec` of a kubeconfig. */
const execSettings = z.object({
  apiVersion: z.enum(['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1']),
  command: z.string().min(1),
  args: z.array(z.string()).nullish(),
  env: z.array(z.object({ name: z.string().min(1), value: z.string() })).nullish(),
  installHint: z.string().nullish(),
  provideClusterInfo: z.boolean().nullish(),
  interactiveMode: z.enum(['Never', 'IfAvailable', 'Always']).nullish(),
});

/** See {@link execSettings}. */
type ExecSettings = z.infer<typeof execSettings>;

/** @throws {Error} when it is malformed. */
export function parseExecSettings(value: unknown): ExecSettings {
  const parsed = execSettings.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new Error(`the exec plugin of the kubeconfig is not valid: ${z.prettifyError(parsed.error)}`);
}

/** The cluster as passed to a plugin. */
export type ClusterForPlugin = Readonly<Record<string, unknown>>;

/** Milliseconds after which a plugin is killed: every request waits for it. */
const pluginTimeoutMs = 60_000;
/** Limit in bytes of a plugin's standard output, and of its standard error. */
const largestAnswer = 1024 * 1024;

const answer = z.object({
  kind: z.literal('ExecCredential'),
  apiVersion: z.string(),
  status: z.object({
    expirationTimestamp: z.iso.datetime({ offset: true }).nullish(),
    token: z.string().nullish(),
    clientCertificateData: z.string().nullish(),
    clientKeyData: z.string().nullish(),
  }),
});

/**
 * Runs a plugin once, without standard input: there is no user to ask.
 *
 * @param folder where the kubeconfig is: a command with a path is relative to it.
 * @param cluster passed on when the settings ask for it.
 * @throws {Error} when the plugin cannot be run, fails, takes over a minute, or answers something else.
 */
export async function runExecPlugin(
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
  for (const { name, value } of settings.env ?? []) Reflect.set(env, name, value);
  const text = await run(command.includes(sep) ? resolve(folder, command) : command, settings, env, what);
  const parsed = answer.safeParse(jsonOf(text));
  if (!parsed.success)
    throw new Error(`${what} did not return an ExecCredential: ${z.prettifyError(parsed.error)}`);
  const { status } = parsed.data;
  if (parsed.data.apiVersion !== apiVersion) {
    throw new Error(`${what} answered in ${parsed.data.apiVersion}, the kubeconfig says ${apiVersion}`);
  }
  const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = status;
  if (isText(cert) !== isText(key)) throw new Error(`${what} answered only one of certificate and key`);
  if (!isText(token) && !isText(cert)) throw new Error(`${what} answered neither a token nor a certificate`);
  return {
    ...(isText(token) ? { token } : {}),
    ...(isText(cert) ? { cert } : {}),
    ...(isText(key) ? { key } : {}),
    ...(isText(expirationTimestamp) ? { expiresAt: Date.parse(expirationTimestamp) } : {}),
  };
}

function run(
  command: string,
  { args, installHint }: ExecSettings,
  env: NodeJS.ProcessEnv,
  what: string,
): Promise<string> {
  return new Promise((done, failed) => {
    const child = spawn(command, args ?? [], { env, stdio: ['ignore', 'pipe', 'pipe'] });
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
    child.on('error', (error) => {
      const hint = isText(installHint) ? `\n${installHint}` : '';
      failed(new Error(`${what} cannot be run: ${error.message}${hint}`, { cause: error }));
    });
    child.on('close', (code, signal) => {
      clearTimeout(late);
      if (code === 0) done(output);
      else failed(new Error(`${what} failed (${signal ?? `exit code ${code ?? ''}`}): ${complaint.trim()}`));
    });
  });
}

function isText(value: string | null | undefined): value is string {
  return value !== undefined && value !== null && value !== '';
}
