import axe from 'axe-core';
import { delimiter, join } from 'node:path';
import { accessSync, constants } from 'node:fs';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import { isRecord, listAt, textAt } from '../../../src/objects/json.ts';

/** Debian's chromium, or the one of `CHROMIUM`; undefined: there is none. */
export const chromiumPath = process.env['CHROMIUM'] ?? onPath('chromium');

function onPath(name: string): string | undefined {
  const files = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, name));
  return files.find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

export const widths = [1280, 800, 400] as const;
export const schemes = ['light', 'dark'] as const;

/** A browser, and what went wrong in its pages: errors of scripts, reports of the CSP, requests to other machines. */
export class Visitor {
  readonly #browser: Browser;
  readonly #faults: string[] = [];
  readonly #contexts: BrowserContext[] = [];
  /** Answers of servers that a test has provoked are no faults: parts of what the console says. */
  readonly expected: RegExp[] = [];

  private constructor(browser: Browser) {
    this.#browser = browser;
  }

  static async launch(): Promise<Visitor> {
    const sandbox = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
    const args = [
      ...sandbox,
      '--force-color-profile=srgb',
      '--font-render-hinting=none',
      '--disable-lcd-text',
    ];
    return new Visitor(
      await chromium.launch({
        ...(chromiumPath === undefined ? {} : { executablePath: chromiumPath }),
        args,
      }),
    );
  }

  /** A profile of its own. */
  async context(options: BrowserContextOptions = {}): Promise<BrowserContext> {
    const context = await this.#browser.newContext({ reducedMotion: 'reduce', ...options });
    this.#contexts.push(context);
    context.setDefaultTimeout(60_000);
    context.on('page', (page) => this.#watch(page));
    return context;
  }

  /** Errors of all pages so far that no test expects. */
  faults(): readonly string[] {
    return this.#faults.filter((fault) => !this.expected.some((known) => known.test(fault)));
  }

  async closeContexts(): Promise<void> {
    for (const context of this.#contexts.splice(0)) await context.close();
  }

  async close(): Promise<void> {
    await this.#browser.close();
  }

  #watch(page: Page): void {
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) this.#faults.push(`console: ${message.text()}`);
    });
    page.on('pageerror', (error) => this.#faults.push(`error: ${error.message}`));
    page.on('request', (request) => {
      const { protocol, hostname } = new URL(request.url());
      if (protocol !== 'blob:' && hostname !== '127.0.0.1') this.#faults.push(`request: ${request.url()}`);
    });
  }
}

const wcag22 = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/**
 * What axe-core finds against WCAG 2.2 AA: each rule with its first element.
 *
 * @param rules only these.
 */
export async function accessibilityFaults(page: Page, rules?: readonly string[]): Promise<readonly string[]> {
  await page.evaluate(`if (typeof axe === 'undefined') { ${axe.source} }`);
  const options = {
    ...{
      runOnly: rules === undefined ? wcag22 : { type: 'rule', values: rules },
      resultTypes: ['violations'],
    },
  };
  const result: unknown = await page.evaluate(`axe.run(document, ${JSON.stringify(options)})`);
  return listAt(result, 'violations').map((violation) => {
    const [first] = listAt(violation, 'nodes');
    return `${textAt(violation, 'id')}: ${isRecord(first) ? `${textAt(first, 'html')} ${textAt(first, 'failureSummary')}` : ''}`;
  });
}
