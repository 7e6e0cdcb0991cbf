// The organisation of all examples, so that one example continues another: a shop with two people, whose
// payments failed on the morning of 2026-11-21, and which then erased the logs that leaked a key.

export const tenantId = 'acme'

export const ada = 'token:ada (tok_01m1dzpw00m9s346q3d25vt4f5)'
export const ben = 'token:ben (tok_01m1e000z0v37e3s3e28jt97kb)'

export const adaTokenId = 'tok_01m1dzpw00m9s346q3d25vt4f5'
export const collectorTokenId = 'tok_01m6e9gxp06cq643dzvmxxqkfb'
export const detectorId = 'det_01m45egbvj4mnpzx45hy43kwjr'
export const anomalyId = 'ano_01m7ynk6d6p1xpa7z3dj8fssz5'
export const requestId = 'del_01m7yq1wtwf5kznwj47tan9zt2'
export const previewId = 'prv_01m7ypxkq0yyk596ngya1dq91k'
export const holdId = 'hld_01m7smtv5096q14dr9gpqy77zx'
export const changeId = 'rch_01m7wx8gr05gqapenecfseczp1'
export const muteId = 'mut_01m7q8ecg0ss6ys3c4dwa7n360'
export const incidentId = 'inc_01kb2m7ze1v3v4h8m6tq0f9xka'

/** Of a span of the failed payments. */
export const traceId = '5b8aa5a2d2c872e8321cf37308d69df2'
export const spanId = '051581bf3cb55c13'

export const resourceAttributes = {
  'service.name': 'checkout',
  'service.version': '2.3.1',
  'host.name': 'node-3',
}
