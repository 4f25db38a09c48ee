/** The cluster, from within namespaces that `run.ts` made: all that it starts and mounts goes with them. */
import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { isStringList, parseRecord, textAt, at } from '../../src/objects/json.ts';
import { machines, nodeNames, ranges } from './addresses.ts';
import { runGatewaySuite } from '../gateway-api/suite.ts';
import { figures, runChecks } from './checks.ts';
import { startControlPlane } from './control-plane.ts';
import { Node, words } from './node.ts';
import { deployCoreDns, deployMetalLb, startKubeProxy } from './peers.ts';
import { run, until } from './processes.ts';
import { deployChart, deployServicenet, endpointsControllers, readComponents } from './servicenet.ts';
import { runSuite, type TestResult } from './suite.ts';
import { gatewaySuite, suites } from './suites.ts';

const settings = parseRecord(process.argv[2] ?? '') ?? {};
const setting = (name: string): string => textAt(settings, name);
const directory = setting('directory');
const logs = setting('logs');

/** Seconds since the start, for what is said. */
const seconds = (): string => `${Math.round(performance.now() / 1000)} s`;

run('mount', ['-t', 'tmpfs', 'tmpfs', '/run']);
mkdirSync('/run/netns');
const addresses = Object.entries(machines).flatMap(([name, each]) => [name, ...Object.values(each)]);
run(join(import.meta.dirname, 'lan.sh'), [...ranges.pods, ...addresses]);
const components = readComponents(setting('components'));
const hasEndpoints = setting('with') === 'servicenet' && components.includes('endpoints');
const kubeconfig = await startControlPlane(directory, logs, hasEndpoints ? endpointsControllers : []);
console.log(`kube-apiserver is ready after ${seconds()}`);
const images = at(settings, 'images');
const nodes = nodeNames.map((name) => new Node(name, directory, logs));
for (const node of nodes) {
  await node.start(isStringList(images) ? images : []);
  node.join(kubeconfig);
}
for (const node of nodes) await until(`node ${node.name}`, 120, () => node.isReady(kubeconfig));
console.log(`${nodes.length} nodes are ready after ${seconds()}`);

if (setting('with') === 'servicenet') {
  if (at(settings, 'chart') === true) {
    deployChart(kubeconfig, components);
    deployCoreDns(kubeconfig);
  } else {
    deployServicenet(kubeconfig, directory, components, setting('suites').split(',').includes(gatewaySuite));
  }
} else {
  startKubeProxy(nodes, join(directory, 'pki'), logs);
  deployCoreDns(kubeconfig);
  if (setting('with').includes('metallb')) await deployMetalLb(kubeconfig);
}
console.log(`${setting('with')} is ready after ${seconds()}`);

const results: TestResult[] = [];
for (const name of setting('suites').split(',').filter(Boolean)) {
  if (name === gatewaySuite) {
    const ran = await gatewayTests();
    results.push(...ran.filter(({ state }) => state !== 'skipped'));
    continue;
  }
  const suite = suites.find((each) => each.name === name);
  if (suite === undefined) throw new Error(`there is no suite ${name}`);
  const focus = setting('focus');
  const { machine = 'cp', minutes, skipped = {} } = suite;
  const ran = await runSuite({
    ...{ name, minutes, kubeconfig, logs, before: words(machine) },
    focus: focus === '' ? suite.focus : [focus],
    skip: Object.values(skipped).flat(),
  });
  results.push(...ran.filter(({ state }) => state !== 'skipped'));
}
console.log(figures({ nodes }).join('\n'));
if (at(settings, 'checks') === true) {
  results.push(...(await runChecks({ kubeconfig, nodes, directory, logs }, components)));
}
for (const { name, state, seconds: taken, message } of results) {
  console.log(`${state.padEnd(8)} ${taken.toFixed(0).padStart(4)} s  ${name}${message && `: ${message}`}`);
}
const passed = results.filter(({ state }) => state === 'passed').length;
if (at(settings, 'keep') === true) {
  console.log(`nsenter --target ${process.ppid} --all`);
  console.log(`export KUBECONFIG=${kubeconfig}`);
  await new Promise((resolve) => process.once('SIGINT', resolve).once('SIGTERM', resolve));
}
console.log(`\n${passed} passed, ${results.length - passed} failed`);
process.exit(passed === results.length ? 0 : 1);

/** The core and what is claimed of all profiles of Gateways, from a machine that is no node and not in their network. */
function gatewayTests(): Promise<TestResult[]> {
  const [usable = ''] = ranges.loadBalancers[0].split('-').toReversed();
  return runGatewaySuite({
    ...{ kubeconfig, before: words('far'), minutes: 60, usable, unusable: '203.0.113.250' },
    flags: ['-conformance-profiles=GATEWAY-HTTP,GATEWAY-GRPC,GATEWAY-TLS,GATEWAY-TCP,GATEWAY-UDP'],
    onLine: (line) => {
      appendFileSync(join(logs, `${gatewaySuite}.log`), `${line}\n`);
    },
  });
}
