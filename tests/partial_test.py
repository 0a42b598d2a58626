#!/usr/bin/env python3
"""Random questions in parts, merged in random groups and orders, against one process.

    python3 partial_test.py ATTN
"""
import os, random, subprocess, sys, tempfile

try:
    import numpy as np
except ImportError:
    print("NumPy is not installed")
    sys.exit(77)

A = os.path.abspath(sys.argv[1])
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)


def run(*a):
    return subprocess.run([A, *map(str, a)], capture_output=True, text=True)


rng=random.Random(1); N=150; bad=0; joined=0
worst={'float32':0,'float64':0}
for i in range(N):
    g=np.random.default_rng(rng.randrange(1<<30))
    b,h=rng.choice([1,2]),rng.choice([1,2,4]); kvh=rng.choice([x for x in (1,2,4) if h%x==0])
    q=rng.choice([1,3,17,70]); k=rng.choice([1,2,5,33,130,700]); d=rng.choice([2,8,16])
    dt=rng.choice(['float32','float64'])
    mode=rng.choice(['sdpa','multihead','cross','causal','self'])
    fl=['--dtype',dt,'--kernel',rng.choice(['auto','reference','generic'])]
    mag=rng.choice([0.1,1,10])
    if mode=='sdpa':
        np.save('q.npy',g.normal(size=(b,h,q,d))*mag);np.save('k.npy',g.normal(size=(b,kvh,k,d))*mag);np.save('v.npy',g.normal(size=(b,kvh,k,d)))
        base=[mode,'--query','q.npy','--key','k.npy','--value','v.npy']; heads=h; kv=k
        if rng.random()<.3:
            m=g.random((q,k))<.7; np.save('m.npy',m); fl+=['--mask','m.npy','--mask-true','keep']
        elif rng.random()<.3:
            np.save('m.npy',g.normal(size=(h,q,k))); fl+=['--mask','m.npy']
        if rng.random()<.3: fl+=['--kv-lengths',','.join(str(rng.randrange(0,k+1)) for _ in range(b))]
        causal=rng.random()<.5
        if causal: fl+=['--causal','--causal-align',rng.choice(['top-left','bottom-right'])]
    else:
        D=8; np.save('x.npy',g.normal(size=(b,q,D))*mag); base=[mode,'x.npy','--d-out',8]; heads=1; kv=q; causal=False
        if mode in('multihead','cross'): heads=2; base+=['--heads',2]
        if mode=='cross': np.save('c.npy',g.normal(size=(b,k,D))); base+=['--context','c.npy']; kv=k
    if rng.random()<.3: fl+=['--alibi']
    if rng.random()<.3: fl+=['--window','3,2']+(['--causal-align','bottom-right'] if mode in('sdpa','cross') and not causal else [])
    if rng.random()<.3: fl+=['--sink',','.join('%.3f'%g.normal() for _ in range(heads))]
    if rng.random()<.3: fl+=['--softcap',5]
    if rng.random()<.3: fl+=['--dropout',.3,'--dropout-seed',3]
    if rng.random()<.3: fl+=['--rope','half']
    if rng.random()<.2 and q>1: fl+=['--rows','0:%d'%max(1,q//2)]
    emit=['--emit','context_vectors,head_outputs,logsumexp'] if mode not in() else []
    if mode=='sdpa' : emit=['--emit','context_vectors,logsumexp']
    w=run(*base,*fl,*emit,'-o','w.npz')
    if w.returncode: 
        if 'emit' in w.stderr: emit=['--emit','context_vectors,logsumexp']; w=run(*base,*fl,*emit,'-o','w.npz')
    if w.returncode: continue
    cuts=sorted(set([0,kv]+[rng.randrange(0,kv+1) for _ in range(rng.randrange(0,5))]))
    parts=[]
    ok=True
    for j,(a,e) in enumerate(zip(cuts,cuts[1:])):
        f='p%d.%s'%(j,rng.choice(['npz','json','safetensors']))
        r=run('partial',*base,*fl,*emit,'--kv-range',f'{a}:{e}','-o',f)
        if r.returncode: print('PART',base,fl,a,e,r.stderr); ok=False; bad+=1; break
        parts.append(f)
    if not ok: continue
    rng.shuffle(parts)
    if len(parts)>2 and rng.random()<.5:
        f='n.'+rng.choice(['npz','json'])
        r=run('merge',*parts[:2],'-o',f)
        if r.returncode: print('NEST',r.stderr); bad+=1; continue
        parts=[f]+parts[2:]
    r=run('merge',*parts,'-o','r.npz')
    if r.returncode: print('MERGE',base,fl,cuts,r.stderr); bad+=1; continue
    joined+=1; W=np.load('w.npz');R=np.load('r.npz')
    for n in W.files:
        if n=='__metadata__': continue
        a,c=W[n].astype(float),R[n].astype(float)
        if a.shape!=c.shape or W[n].dtype!=R[n].dtype: print('SHAPE',n,a.shape,c.shape,base,fl); bad+=1; continue
        if not (np.isinf(a)==np.isinf(c)).all() or not (np.isnan(a)==np.isnan(c)).all(): print('NONFIN',n,base,fl,cuts); bad+=1; continue
        m=np.isfinite(a); e=np.abs(a[m]-c[m])/(1+np.abs(a[m])); e=e.max() if e.size else 0
        worst[dt]=max(worst[dt],e)
        if e>(2e-5 if dt=='float32' else 1e-13): print('DIFF',n,e,base,fl,cuts); bad+=1
print('cases',N,'bad',bad,worst)
os.chdir('/')
sys.exit(bad != 0 or joined < N // 2)
