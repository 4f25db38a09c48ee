/** Credentials from a program (client-go's `plugin/pkg/client/auth/exec`, KEP-541). */
import { spawn } from 'node:child_process';
import { resolve, sep } from 'node:path';
import { z } from 'zod';
import type { Credential } from './login.ts';
import { jsonOf } from './oidc.ts';

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
const timeoutMs = 60_000;
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
      failed(new Error(`${what} did not finish within ${timeoutMs / 1000} s`));
      child.kill('SIGKILL');
      child.stdout.destroy();
      child.stderr.destroy();
    }, timeoutMs);
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
