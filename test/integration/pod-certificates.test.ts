import { pino } from 'pino';
import { afterAll, expect, test } from 'vitest';
import { podCertificateCleanerController } from '../../src/controllers/pod-certificate-cleaner.ts';
import { runControllers } from '../../src/controllers/run.ts';
import {
  servingBundleName,
  trustBundlePublisherController,
} from '../../src/controllers/trust-bundle-publisher.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { textAt } from '../../src/objects/json.ts';
import { fixedAuthority, issueCertificate } from '../support/certificates.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { samples } from '../support/fuzz/samples.ts';
import { call } from '../support/test-server.ts';
import { itemsOf, untilObject } from '../support/with-controllers.ts';

/** The controllers of certificates.k8s.io. */
const server = await startApiServer();
const { client } = server;
afterAll(async () => server.stop());

const bundles = '/apis/certificates.k8s.io/v1/clustertrustbundles';
const requests = '/apis/certificates.k8s.io/v1/namespaces/default/podcertificaterequests';
const log = pino({ enabled: false });
const nameOf = (object: unknown): string => textAt(object, 'metadata', 'name');

test('the authority of the API server is a bundle, and earlier ones go', { timeout: 60_000 }, async () => {
  const signerName = 'kubernetes.io/kube-apiserver-serving';
  const earlier = issueCertificate({ subject: 'earlier', isCA: true }).certificate;
  const others = issueCertificate({ subject: 'others', isCA: true }).certificate;
  const stored = [
    { metadata: { name: servingBundleName(earlier) }, spec: { signerName, trustBundle: earlier } },
    { metadata: { name: 'others' }, spec: { trustBundle: others } },
  ];
  for (const body of stored) {
    expect((await call(client, 'POST', bundles, { body })).status).toBe(201);
  }
  const controllers = [trustBundlePublisherController(fixedAuthority)];
  const running = runControllers({ transport: client, controllers, log });
  try {
    const name = servingBundleName(fixedAuthority);
    expect(name).toMatch(/^kubernetes\.io:kube-apiserver-serving:[0-9a-f]{24}$/);
    await untilObject(client, bundles, (body) => {
      const names = itemsOf(body).map(nameOf);
      return names.length === 2 && names.includes(name) && names.includes('others');
    });
    // What others change or delete comes back.
    const body = { spec: { trustBundle: others } };
    const contentType = 'application/merge-patch+json';
    await call(client, 'PATCH', `${bundles}/${name}`, { body, contentType });
    await untilObject(
      client,
      `${bundles}/${name}`,
      (object) => textAt(object, 'spec', 'trustBundle') === fixedAuthority,
    );
    await call(client, 'DELETE', `${bundles}/${name}`);
    await untilObject(client, `${bundles}/${name}`, (_, status) => status === 200);
  } finally {
    await running.stop();
  }
});

test('a request for a certificate goes after a quarter of an hour', { timeout: 60_000 }, async () => {
  const body = { metadata: { name: 'a' }, ...samples.get('certificates.k8s.io/podcertificaterequests') };
  expect((await call(client, 'POST', requests, { body })).status).toBe(201);
  const clock = new FakeClock(Date.now());
  const running = runControllers({
    ...{ transport: client, controllers: [podCertificateCleanerController], log, clock },
  });
  try {
    await clock.timerWithin(14 * 60_000, 15 * 60_000);
    expect((await call(client, 'GET', `${requests}/a`)).status).toBe(200);
    await clock.advance(15 * 60_000 + 1000);
    await untilObject(client, `${requests}/a`, (_, status) => status === 404);
  } finally {
    await running.stop();
  }
});
