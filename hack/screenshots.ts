/**
 * Draws the pictures of README.md: the page of a `servicenet up` with its example, of which one Service is broken. It needs
 * Chromium (`CHROMIUM`, or on the path), kubectl, and what the cluster network needs.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'docs', 'pictures');
const home = mkdtempSync(join(tmpdir(), 'servicenet-pictures-'));
const kubeconfig = join(home, 'kubeconfig');
const env = { ...process.env, HOME: home, KUBECONFIG: kubeconfig };
const main = join(root, 'src', 'main.js');

const kubectl = (...args: readonly string[]): string =>
  execFileSync('kubectl', args, { env, encoding: 'utf8' });

const places = [
  ['map', '/map?ns=shop&sel=service/shop/cart', 'aside.details .why'],
  ['way', '/way?from=deployment/shop/storefront&to=svc/shop/catalog:80', '.ladder'],
] as const;

const policy = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: catalog, namespace: shop }
spec:
  podSelector: { matchLabels: { app: catalog } }
  ingress:
    - from: [{ podSelector: { matchLabels: { app: cart } } }]
      ports: [{ port: http }]
`;

const flags = ['--port', '0', '--page', '0', '--network', 'on', '--write-kubeconfig', kubeconfig];
const example = ['--apply', join(root, 'deploy', 'examples', 'quickstart.yaml')];
const up = spawn(process.execPath, [main, 'up', ...flags, ...example], {
  env,
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  let output = '';
  while (!output.includes('cluster network is ready')) output += String(await once(up.stdout, 'data'));
  kubectl('-n', 'shop', 'annotate', 'pods', '-l', 'app=cart', 'servicenet.dev/readiness=false');
  execFileSync('kubectl', ['apply', '-f', '-'], { env, input: policy });
  const link = execFileSync(process.execPath, [main, 'page'], { env, encoding: 'utf8' }).trim();

  const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
  const sandbox = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch({ executablePath, args: sandbox });
  mkdirSync(folder, { recursive: true });
  for (const colorScheme of ['light', 'dark'] as const) {
    const context = await browser.newContext({ colorScheme, viewport: { width: 1280, height: 840 } });
    const page = await context.newPage();
    await page.goto(link);
    await page.locator('.map-row').first().waitFor();
    for (const [name, place, content] of places) {
      await page.goto(`${new URL(link).origin}${place}`);
      await page.locator(content).first().waitFor();
      await page.getByText('live', { exact: true }).waitFor();
      await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`), animations: 'disabled' });
    }
    await context.close();
  }
  await browser.close();
} finally {
  const ended = once(up, 'exit');
  up.kill('SIGTERM');
  await ended;
  rmSync(home, { recursive: true, force: true });
}
