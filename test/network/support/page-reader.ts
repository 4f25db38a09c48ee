import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { at } from '../../../src/objects/json.ts';
import { Child } from '../../e2e/child.ts';
import { type Block, blocksOf, comparableLines, type Step, stepsOf } from '../../support/pages.ts';

const repository = join(import.meta.dirname, '../../..');

/** How a page is followed, from its first block to its last. */
export interface Page {
  /** What its reader has already, made in a shell. */
  readonly before?: string;
  /** What its reader fills in for a word: the output of a command. */
  readonly words?: Readonly<Record<string, string>>;
  /** The beginnings of commands that go on, in a terminal of their own. */
  readonly servers?: readonly string[];
  /** The beginnings of blocks and commands that are not followed here, with the test that does, or what is missing. */
  readonly not?: Readonly<Record<string, string>>;
  /** Takes away what others would meet. */
  readonly after?: string;
}

/** Why something is not followed here, by how it begins; undefined: it is. */
export function reasonOf({ not = {} }: Page, text: string): string | undefined {
  return Object.entries(not).find(([beginning]) => text.startsWith(beginning))?.[1];
}

/** Does what a page says, in a folder of its own with `deploy`, this repository as `servicenet` and, on the PATH, its program. */
export class PageReader {
  readonly #folder: string;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #servers: { readonly step: Step; readonly child: Child }[] = [];
  /** Files with the objects of the page. */
  readonly #manifests: string[] = [];
  #words: Readonly<Record<string, string>> = {};

  /** @param home where the folder is made. */
  constructor(home: string, kubeconfig: string) {
    this.#folder = mkdtempSync(join(home, 'reader-'));
    const programs = join(this.#folder, '.bin');
    this.#environment = {
      ...{ HOME: home, KUBECONFIG: kubeconfig, PYTHONUNBUFFERED: '1', TERM: 'xterm' },
      PATH: `${programs}:${process.env['PATH'] ?? ''}:/usr/sbin`,
    };
    mkdirSync(programs);
    const program = `#!/bin/sh\nexec '${process.execPath}' '${repository}/src/main.js' "$@"\n`;
    writeFileSync(join(programs, 'servicenet'), program, { mode: 0o755 });
    symlinkSync(join(repository, 'deploy'), join(this.#folder, 'deploy'));
    symlinkSync(repository, join(this.#folder, 'servicenet'));
  }

  /** Follows a page from its first block to its last, and takes its objects away. @throws {Error} where it is wrong. */
  async follow(text: string, page: Page): Promise<void> {
    const { before = 'true', words = {}, after = 'true' } = page;
    await this.#succeed(before);
    for (const [word, command] of Object.entries(words)) {
      this.#words = { ...this.#words, [word]: (await this.#succeed(command)).trim() };
    }
    try {
      for (const block of blocksOf(text)) {
        if (reasonOf(page, block.text) === undefined) await this.#followBlock(block, page);
      }
      for (const { step, child } of this.#servers) {
        await expect
          .poll(() => difference(child.output, step.output), { message: step.command })
          .toEqual(same);
      }
    } finally {
      for (const { child } of this.#servers) await child.end();
    }
    for (const file of this.#manifests) {
      await this.#succeed(`kubectl delete --ignore-not-found -f ${file}`);
    }
    await this.#succeed(after);
  }

  async #followBlock(block: Block, page: Page): Promise<void> {
    if (block.kind === 'yaml') return this.#apply(block.text);
    for (const step of stepsOf(block)) {
      const line = block.kind === 'console' ? `$ ${step.command}` : step.command;
      if (reasonOf(page, line) !== undefined) continue;
      if (page.servers?.some((beginning) => step.command.startsWith(beginning)) === true) {
        this.#servers.push({ step, child: this.#begin(`exec ${step.command}`) });
      } else {
        await this.#followStep(step);
      }
    }
  }

  /** Whole manifests are applied. Of a kustomization a server says what it would do: alone, or beside the base. */
  async #apply(text: string): Promise<void> {
    const documents = parseAllDocuments(text).map((document) => {
      const value: unknown = document.toJS();
      return value;
    });
    if (documents.every((document) => at(document, 'kind') !== undefined)) {
      const file = `manifest-${this.#manifests.length}.yaml`;
      writeFileSync(join(this.#folder, file), text);
      this.#manifests.push(file);
      await this.#succeed(`kubectl apply -f ${file}`);
      return;
    }
    const tried = 'kubectl apply --dry-run=server --server-side -k .';
    const file = join(this.#folder, 'kustomization.yaml');
    writeFileSync(file, text);
    if ((await this.#run(tried)).code === 0) return;
    if (documents.every((document) => at(document, 'resources') === undefined)) {
      writeFileSync(file, `${text}resources: [servicenet/deploy/base]\n`);
    }
    await this.#succeed(tried);
  }

  /**
   * What fails is tried again for a minute, as a person does, and so is what only looks and does not show yet what stands
   * in the page.
   */
  async #followStep({ command, output }: Step): Promise<void> {
    const looks =
      /^(?:kubectl (?:-n \S+ )?(?:get|describe)|servicenet (?:run|trace|pools|audit)|curl)\b/.test(command);
    const deadline = Date.now() + 60_000;
    for (;;) {
      const child = await this.#run(command);
      const found = { code: child.code, ...difference(child.output, output) };
      const isRight = child.code === 0 && found.absent.length + found.strange.length === 0;
      if (isRight || Date.now() > deadline || (child.code === 0 && !looks)) {
        expect(found, `${command}\n${child.output}`).toEqual({ code: 0, ...same });
        return;
      }
      await sleep(100);
    }
  }

  /** @returns what a script prints. @throws {Error} where it fails. */
  async #succeed(script: string): Promise<string> {
    const child = await this.#run(`set -e\n${script}`);
    expect(child.code, `${script}\n${child.output}`).toBe(0);
    return child.output;
  }

  async #run(script: string): Promise<Child> {
    const child = this.#begin(script);
    await child.closed;
    return child;
  }

  #begin(script: string): Child {
    const filled = Object.entries(this.#words).reduce(
      (text, [word, value]) => text.replaceAll(word, value),
      script,
    );
    return new Child('bash', ['-c', `cd '${this.#folder}'\n${filled}`], this.#environment);
  }
}

const same = { absent: [], strange: [] };

/**
 * What an output lacks of that in a page, and what it has beside it, as patterns and lines; the order is free. `…` in a
 * page stands for anything, alone for any lines. Nothing in the page says nothing.
 */
function difference(
  output: string,
  wanted: string,
): { readonly absent: string[]; readonly strange: string[] } {
  const lines = masked(output);
  const patterns = masked(wanted)
    .filter((line) => line !== '…')
    .map((line) => `^${line.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '.*')}$`);
  const isOpen = patterns.length === 0 || masked(wanted).includes('…');
  return {
    absent: patterns.filter((pattern) => !lines.some((line) => new RegExp(pattern).test(line))),
    strange: isOpen
      ? []
      : lines.filter((line) => !patterns.some((pattern) => new RegExp(pattern).test(line))),
  };
}

/** Without what depends on the place of Pods and on Services of other pages. */
function masked(output: string): string[] {
  return comparableLines(output).map((line) =>
    line
      .replace(/^[│├└─ ]+/, '')
      .replace(/\b\d{4}-\d\d-\d\dT[\d:]+Z/g, 'time')
      .replace(/:\d{5}\/TCP/g, ':port/TCP')
      .replace(/\bnode-\d\b/g, 'node-x')
      .replace(/\b10\.244\.\d+\.\S+/g, 'pod-address')
      .replace(/\b192\.0\.2\.\d+\b(?![/-])/g, '192.0.2.x'),
  );
}
