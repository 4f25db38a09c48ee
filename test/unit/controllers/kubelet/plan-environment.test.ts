import { expect, test } from 'vitest';
import { withSubPaths } from '../../../../src/controllers/kubelet/plan-environment.ts';

const environment = new Map([
  ['POD', 'web-0'],
  ['ROOT', '/data'],
  ['UP', '..'],
  ['EMPTY', ''],
]);
const container = (subPathExpr: string) => ({
  name: 'main',
  volumeMounts: [
    { name: 'a', mountPath: '/a', subPathExpr },
    { name: 'b', mountPath: '/b', subPath: 'b' },
  ],
});

// pkg/kubelet/kubelet_pods.go makeMounts
test.each([
  ['$(POD)', 'web-0'],
  ['x/$(POD)/y', 'x/web-0/y'],
  ['$$(POD)', '$(POD)'],
  ['a..b', 'a..b'],
])('subPathExpr %s is the subPath %s', (expression, subPath) => {
  expect(withSubPaths(container(expression), environment).volumeMounts).toEqual([
    { name: 'a', mountPath: '/a', subPath },
    { name: 'b', mountPath: '/b', subPath: 'b' },
  ]);
});

test.each([
  ['$(NONE)/$(EMPTY)/$(POD)', 'missing value for EMPTY, NONE'],
  ['$(ROOT)', 'error SubPath `/data` must not be an absolute path'],
  ['x/$(UP)', "unable to provision SubPath `x/..`: must not contain '..'"],
])('subPathExpr %s stops the container', (expression, message) => {
  expect(() => withSubPaths(container(expression), environment)).toThrow(message);
});
