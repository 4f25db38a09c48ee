import { describe, expect, test } from 'vitest';
import { parseReference } from '../../../src/objects/references.ts';

describe('the name of an object', () => {
  test.each([
    ['web', undefined, 'default', 'web'],
    ['shop/web', undefined, 'shop', 'web'],
    ['pod/web', 'Pod', 'default', 'web'],
    ['po/shop/web', 'Pod', 'shop', 'web'],
    ['svc/web', 'Service', 'default', 'web'],
    ['services/shop/web', 'Service', 'shop', 'web'],
    ['deploy/web', 'Deployment', 'default', 'web'],
    ['Deployment/shop/web', 'Deployment', 'shop', 'web'],
    ['deployment.apps/web', 'Deployment', 'default', 'web'],
    ['sts/web', 'StatefulSet', 'default', 'web'],
    ['ds/web', 'DaemonSet', 'default', 'web'],
    ['jobs/web', 'Job', 'default', 'web'],
    ['no/node-1', 'Node', 'default', 'node-1'],
  ])('%s', (text, kind, namespace, name) => {
    expect(parseReference(text, 'default')).toEqual({ kind, namespace, name });
  });

  test.each(['', '/', 'web/', '/web', 'pod//web', 'ingress/shop/web', 'pod/a/b/c', 'node/shop/node-1'])(
    '%j is none',
    (text) => {
      expect(parseReference(text, 'default')).toBeUndefined();
    },
  );
});
