import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { Agent, request } from 'undici';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';

/** One that is switched off, and none that is on: only the test writes. */
const noControllers = '--controllers=-load-balancer';
const main = fileURLToPath(new URL('../../src/main.js', import.meta.url));

/** An answer of the server. */
export interface Answer {
  readonly status: number;
  readonly body: JsonRecord;
}

/** `servicenet up --data-dir` as a process of its own, and a client that knows what its kubeconfig says. */
export class UpProcess {
  /** What its clients were answered. */
  readonly access: Access;
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  readonly #agent: Agent;

  private constructor(child: ChildProcess, closed: Promise<unknown>, access: Access) {
    this.#child = child;
    this.#closed = closed;
    this.access = access;
    this.#agent = new Agent({ connect: { ca: access.ca }, connections: 16 });
  }

  /**
   * Starts it and waits until it is ready.
   *
   * @param access what an earlier process of the same directory gave out: must work still.
   */
  static async start(directory: string, flags: readonly string[], access?: Access): Promise<UpProcess> {
    const kubeconfig = path.join(directory, 'kubeconfig');
    fs.rmSync(kubeconfig, { force: true });
    const own = ['--data-dir', path.join(directory, 'data'), '--write-kubeconfig', kubeconfig];
    const args = [main, 'up', '--port', '0', ...own, noControllers, ...flags];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const closed = once(child, 'close');
    let output = '';
    await new Promise<void>((resolve, reject) => {
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (output.includes('is ready')) resolve();
      });
      child.once('exit', (code) => reject(new Error(`up ended with ${String(code)} before it was ready`)));
    });
    const now = readAccess(kubeconfig);
    return new UpProcess(child, closed, access === undefined ? now : { ...access, url: now.url });
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** One request. Rejects when the process dies before it has answered. */
  async call(method: 'GET' | 'POST' | 'PUT' | 'DELETE', url: string, body?: object): Promise<Answer> {
    const answer = await request(this.access.url + url, {
      method,
      dispatcher: this.#agent,
      headers: { authorization: `Bearer ${this.access.token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const parsed: unknown = await answer.body.json();
    return { status: answer.statusCode, body: isRecord(parsed) ? parsed : {} };
  }

  /** Ends it as a power cut would, for the process. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#closed;
    await this.#agent.destroy();
  }
}

/** What a kubeconfig says. */
export interface Access {
  readonly url: string;
  readonly token: string;
  readonly ca: string;
}

function readAccess(file: string): Access {
  const config: unknown = parse(fs.readFileSync(file, 'utf8'));
  const cluster = first(config, 'clusters', 'cluster');
  return {
    url: text(cluster['server']),
    ca: Buffer.from(text(cluster['certificate-authority-data']), 'base64').toString(),
    token: text(first(config, 'users', 'user')['token']),
  };
}

function first(config: unknown, list: string, member: string): JsonRecord {
  const entries: unknown = isRecord(config) ? config[list] : undefined;
  const entry: unknown = Array.isArray(entries) ? entries[0] : undefined;
  const value = isRecord(entry) ? entry[member] : undefined;
  return isRecord(value) ? value : {};
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
